// The model: what it is, how good it was on held-out texts, how it learned, and how often its labels were trained.

import { ask } from "./api.js";
import { lineChart } from "./chart.js";
import { badge, bar, byId, el, fill, whole } from "./dom.js";
import { attempt } from "./state.js";

const MEANINGS = [
  ["P@1", "the first label is right"],
  ["P@5", "right among the first five labels"],
  ["nDCG@5", "how well the first five are ordered"],
  ["PSP@5", "like P@5, where rare labels count more"],
  ["R@10", "of a text's labels, found among the first ten"],
  ["R@100", "of a text's labels, found among the first hundred"],
];

export async function showModel() {
  const [info, log] = await Promise.all([attempt(() => ask("info")), attempt(() => ask("learning"))]);
  if (info && log) fill(byId("model"), facts(info), metrics(info.facts), learning(log.rows), rarity(info));
}

function facts(info) {
  const { facts: made } = info;
  const shown = {
    Labels: whole(info.labels),
    "Training texts": whole(info.train_queries),
    Data: made.corpus,
    Encoder: info.encoder,
    Dimensions: whole(info.dimensions),
    Epochs: made.epochs,
    "Training time": made.train_s ? duration(made.train_s) : undefined,
    Loaded: new Date(info.loaded_at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
  };
  const cards = Object.entries(shown).filter(([, value]) => value !== undefined).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))));
  return [el("dl", { class: "facts" }, cards), info.changed ? el("p", { class: "quiet" }, "Labels were changed here and not kept in the model directory: the changes end with the server.") : null].filter(Boolean);
}

function metrics({ validation }) {
  if (!validation) return null;
  const rows = MEANINGS.filter(([name]) => name in validation).map(([name, meaning]) => el("div", { class: "metric" },
    el("span", { class: "number" }, validation[name].toFixed(1), el("small", {}, " %")), el("span", { class: "metric-name" }, name), el("span", { class: "quiet" }, meaning), bar(validation[name] / 100)));
  return el("section", {}, el("h2", {}, "How good it is"), el("p", { class: "quiet" }, "On texts that were held out of training, in percent."), el("div", { class: "metrics" }, rows));
}

function learning(rows) {
  const quality = Object.fromEntries(["P@1", "P@5"].map((name) => [name, points(rows, "validation", name)]));
  const runs = [...new Set(rows.filter((row) => row.phase === "train").map((row) => row.run ?? "all"))];
  const loss = Object.fromEntries(runs.map((run) => [runs.length > 1 ? { choose: "selection" }[run] ?? run : "loss", points(rows, "train", "loss", run)]));
  const charts = [["Right labels on held-out texts, in percent", lineChart("Right labels in percent", quality)], ["Loss in training", lineChart("Loss in training", loss, { fromZero: true })]];
  const figures = charts.filter(([, chart]) => chart).map(([name, chart]) => el("figure", {}, el("figcaption", {}, name), chart));
  return figures.length ? el("section", {}, el("h2", {}, "How it learned"), el("div", { class: "pair" }, figures)) : null;
}

function points(rows, phase, name, run = null) {
  const found = new Map();
  for (const row of rows) {
    if (row.phase === phase && Number.isFinite(row[name]) && (run === null || (row.run ?? "all") === run)) found.set(row.epoch, [row.epoch, row[name]]);
  }
  return [...found.values()].sort((a, b) => a[0] - b[0]);
}

function rarity({ buckets, labels }) {
  const meaning = { head: "the most frequent labels", torso: "the middle", tail: "the rare ones" };
  return el("section", {}, el("h2", {}, "Frequent and rare labels"), el("p", { class: "quiet" }, "Each group has about a third of all training pairs: few labels are frequent, most are rare."),
    el("ul", { class: "rarity" }, Object.entries(buckets).map(([name, count]) => el("li", {}, badge(name), el("span", {}, meaning[name]), el("span", { class: "score" }, `${whole(count)} labels`), bar(count / labels)))));
}

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
