// Why a text gets a label: its words, what the label is made of, and training texts like it.

import { ask } from "./api.js";
import { badge, byId, counted, el, fill, hundredths, signed } from "./dom.js";
import { attempt, capital } from "./state.js";

const PARTS = {
  text: ["Its own words", "the label's name and description"],
  centroid: ["Its training texts", "the middle of all texts that have the label"],
  "free vector": ["What it learned", "a vector shared with similar labels"],
};
const VOICES = {
  prototype: ["The label itself", "how near the text is to what it is made of, below"],
  classifier: ["What was learned last", "how near the text is to a vector of the label's own"],
  memory: ["Training texts like yours", "their votes: those below with this label count"],
  lexical: ["Single words", "what training taught of each for this label"],
  judge: ["How it all fits together", "a correction, learned from texts that were held back"],
};
const wide = matchMedia("(min-width: 60rem)");
const panel = byId("why");
let running = null, shown = "";

wide.addEventListener("change", () => place(true));

// Beside the labels where there is room; else below the chosen one, and only when it was chosen by hand.
export function place(byHand) {
  const chosen = byId("results").querySelector("button[aria-pressed=true]");
  panel.hidden = !wide.matches && !byHand;
  if (wide.matches || !chosen) document.querySelector("#view-try .split").append(panel);
  else chosen.parentElement.append(panel);
}

export function clearWhy() {
  running?.abort();
  shown = "";
  document.querySelector("#view-try .split").append(panel);
  panel.hidden = !wide.matches;
  fill(panel, el("p", { class: "empty" }, "Why a label was chosen is shown here."));
}

export async function explain(text, label) {
  const question = JSON.stringify([text, label.uid]);
  if (question === shown) return;
  running?.abort();
  running = new AbortController();
  const mine = running;
  panel.classList.add("old");
  const answer = await attempt(() => ask("explain", { body: { text, uid: label.uid, queries: 4 }, signal: mine.signal }), (sentence) => {
    fill(panel, el("p", { class: "problem" }, capital(sentence)));
    panel.classList.remove("old");
  });
  if (mine !== running || !answer) return;
  shown = question;
  panel.classList.remove("old");
  fill(panel, head(answer), words(answer.words), voices(answer), parts(answer), near(answer));
}

function head({ label, score }) {
  return el("header", { class: "panel-head" },
    el("h2", {}, el("span", { class: "quiet" }, "Why "), label.label),
    el("p", { class: "about" }, badge(label.bucket), counted(label.train_queries, "training text"), el("span", {}, `score ${hundredths(score)}`)),
    el("a", { href: `#/labels/${label.id}` }, "This label and its neighbours"));
}

function words(list) {
  if (!list.length) return null;
  const most = Math.max(0.02, ...list.map((word) => Math.abs(word.change)));
  const marks = list.flatMap(({ word, change }) => {
    const strength = Math.round(4 * Math.abs(change) / most);
    const kind = strength === 0 ? "" : `${change > 0 ? "for" : "against"}-${strength}`;
    return [el("span", { class: `word ${kind}`, title: `without it the score changes by ${signed(-change)}` }, word), " "];
  });
  return el("section", {}, el("h3", {}, "Words that count"), el("p", { class: "words" }, marks),
    el("p", { class: "key quiet" }, el("span", { class: "word for-3" }, "for"), " ", el("span", { class: "word against-3" }, "against"), " the label, by what the score loses without the word"));
}

// What makes the score, where more than the prototype speaks.
function voices({ voices: list, lexical, score }) {
  if (list.length < 2) return null;
  const lines = list.map(({ voice, share }, at) => el("li", {},
    el("span", { class: `swatch p${at}`, "aria-hidden": "true" }),
    el("span", {}, VOICES[voice][0], el("small", {}, VOICES[voice][1]), voice === "lexical" ? said(lexical) : null),
    el("span", { class: "score" }, signed(share))));
  return el("section", { class: "voices" }, el("h3", {}, "What speaks for it"), stack(list), el("ul", { class: "parts" }, lines),
    el("p", { class: "key quiet" }, `Together they make the score, ${hundredths(score)}.`));
}

function said({ words: list, bias }) {
  const told = list.filter(({ adds }) => Math.abs(adds) >= 0.005).slice(0, 5).map(({ word, adds }) => `${word} ${signed(adds)}`);
  return el("small", {}, [...told, `with none ${signed(bias)}`].join(" · "));
}

function stack(list) {
  const total = list.reduce((sum, part) => sum + Math.max(0, part.share), 0) || 1;
  return el("span", { class: "stack", "aria-hidden": "true" }, list.map((part, at) => {
    const piece = el("span", { class: `piece p${at}` });
    piece.style.width = `${(100 * Math.max(0, part.share)) / total}%`;
    return piece;
  }));
}

function parts({ parts: list, voices: [prototype, ...others] }) {
  const lines = list.map((part, at) => el("li", { title: part.without === null ? null : `without this part it would be ${hundredths(part.without)}` },
    el("span", { class: `swatch p${at}`, "aria-hidden": "true" }),
    el("span", {}, PARTS[part.part][0], el("small", {}, PARTS[part.part][1])),
    el("span", { class: "score" }, signed(part.share))));
  const whole = others.length ? "the label itself" : "the score";
  return el("section", {}, el("h3", {}, "What the label is made of"), stack(list), el("ul", { class: "parts made" }, lines),
    el("p", { class: "key quiet" }, `Together they make ${whole}, ${hundredths(prototype.share)}.`));
}

function near({ nearest, nearest_with_label: own, label }) {
  if (!nearest.length) return el("section", {}, el("h3", {}, "Training texts like it"), el("p", { class: "quiet" }, "This model was saved without its training texts."));
  const right = nearest.filter((query) => query.has_label).length;
  return el("section", {},
    el("h3", {}, "Training texts with this label"),
    own.length ? el("ul", { class: "near" }, own.map(query)) : el("p", { class: "quiet" }, `No training text has the label “${label.label}”; it is known by its words.`),
    el("details", {}, el("summary", {}, `The ${nearest.length} nearest of all: ${right} with this label`), el("ul", { class: "near" }, nearest.map(query))));
}

function query({ text, score, adds, has_label: right, labels }) {
  return el("li", {}, el("span", { class: "text" }, text), el("span", { class: "score" }, hundredths(score)),
    el("span", { class: "quiet" }, right ? el("span", { class: "right", title: "has this label" }, "✓ ") : "", adds >= 0.005 ? el("span", { title: "what it adds to the score" }, `${signed(adds)} · `) : "", labels.slice(0, 5).join(" · "), labels.length > 5 ? " …" : ""));
}
