// Type a text, see its labels. Questions wait until the typing pauses; only the answer to the latest one is shown.

import { ask, Refused, wasAborted } from "./api.js";
import { badge, bar, byId, counted, el, fill, hundredths, percent, walkWithArrows } from "./dom.js";
import { attempt, capital, onBack } from "./state.js";
import { clearWhy, explain, place } from "./why.js";

const PAUSE_MS = 160;
let timer = 0, running = null, asked = "", chosen = null, fresh = null, probability = false;

export function startTry() {
  byId("text").addEventListener("input", () => { grow(); soon(PAUSE_MS); });
  byId("top").addEventListener("change", () => soon(0));
  byId("text").addEventListener("keydown", (event) => {
    const first = byId("results").querySelector("button.row");
    const atEnd = byId("text").selectionEnd === byId("text").value.length;
    if (event.key === "ArrowDown" && atEnd && first) { event.preventDefault(); first.focus(); }
  });
  walkWithArrows(byId("results"));
  onBack(() => soon(0));
  showExamples();
  clearWhy();
}

// What was typed before this was known is asked again.
export function knowsProbability(known) {
  if (known !== probability) soon(0);
  probability = known;
}

// Shows what the model says to a text; a label that was just made is marked among the answers.
export function tryText(text, uid = null) {
  byId("text").value = text;
  fresh = uid;
  grow();
  soon(0);
  location.hash = "#/try";
}

function soon(pause) {
  clearTimeout(timer);
  timer = setTimeout(predict, pause);
}

async function predict() {
  running?.abort();
  const text = byId("text").value;
  byId("examples").hidden = text.trim() !== "";
  if (!text.trim()) {
    asked = "";
    fill(byId("results"));
    byId("answer-state").textContent = "";
    clearWhy();
    return;
  }
  running = new AbortController();
  const mine = running;
  const top = Number(byId("top").value);
  byId("results").classList.add("old");
  const answer = await attempt(() => askPatiently({ texts: [text], top, details: true, probability }, mine.signal), (sentence) => {
    byId("answer-state").textContent = capital(sentence);
  });
  if (mine !== running || !answer) return;
  byId("results").classList.remove("old");
  asked = text;
  show(answer.results[0].labels);
}

// A busy server says when to come again.
async function askPatiently(question, signal) {
  for (;;) {
    try {
      return await ask("predict", { body: question, signal });
    } catch (error) {
      if (wasAborted(error) || !(error instanceof Refused) || error.status !== 429) throw error;
      byId("answer-state").textContent = "Many are asking at the moment; yours comes next …";
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(1, error.wait)));
      if (signal.aborted) throw new DOMException("", "AbortError");
    }
  }
}

function show(labels) {
  const had = byId("results").contains(document.activeElement);
  const kept = labels.find((label) => label.uid === (fresh ?? chosen)) ?? labels[0];
  const most = Math.max(1, ...labels.map((label) => label.score));
  fill(byId("results"), labels.map((label) => row(label, most)));
  byId("answer-state").textContent = told(labels);
  if (kept) choose(kept, false);
  else clearWhy();
  if (had) byId("results").querySelector("button.row[aria-pressed=true]")?.focus();
}

function told(labels) {
  if (!labels.length) return "No label fits: there is no word in this text that the model could read.";
  const many = `${counted(labels.length, "label")}, best first`;
  if (fresh && !labels.some((label) => label.uid === fresh)) return `${many}. The new label is not among them; a description or texts that it belongs to would help.`;
  return probability ? `${many}, and how likely each is right` : many;
}

function row(label, most) {
  const number = label.probability === undefined ? hundredths(label.score) : percent(label.probability);
  return el("li", {}, el("button", { type: "button", class: "row", "data-uid": label.uid, "aria-pressed": "false", title: `score ${hundredths(label.score)}`, onclick: () => choose(label, true) },
    el("span", { class: "name" }, label.label, label.uid === fresh ? el("span", { class: "badge new" }, "new") : null),
    el("span", { class: "score" }, number),
    bar(label.probability ?? label.score / most),
    el("span", { class: "about" }, badge(label.bucket), counted(label.train_queries, "training text")),
  ));
}

function choose(label, byHand) {
  if (byHand) fresh = null;
  chosen = label.uid;
  for (const button of byId("results").querySelectorAll("button.row")) {
    button.setAttribute("aria-pressed", String(button.dataset.uid === label.uid));
  }
  place(byHand);
  explain(asked, label);
}

function grow() {
  const field = byId("text");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 320)}px`;
}

async function showExamples() {
  const answer = await attempt(() => ask("examples"), () => {});
  if (!answer?.texts.length) return;
  const buttons = answer.texts.slice(0, 4).map((text) => el("button", { type: "button", class: "chip", onclick: () => { tryText(text); byId("text").focus(); } }, text));
  fill(byId("examples"), el("span", { class: "quiet" }, "For example:"), ...buttons);
}
