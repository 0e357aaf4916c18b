// Labels: found by name, looked at with their neighbours, added and removed.

import { ask } from "./api.js";
import { badge, bar, byId, counted, el, fill, hundredths, walkWithArrows } from "./dom.js";
import { attempt, capital, onBack } from "./state.js";
import { tryText } from "./try.js";

const PAUSE_MS = 160, PAGE = 30;
const BUCKETS = [["", "all"], ["head", "head"], ["torso", "torso"], ["tail", "tail"]];
const wide = matchMedia("(min-width: 60rem)");
let timer = 0, running = null, looking = null, offset = 0, bucket = "", id = null, mayChange = false;
let note = "Choose a label to see its neighbours.";

export function startLabels() {
  byId("find").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(find, PAUSE_MS); });
  byId("more").addEventListener("click", () => find(true));
  byId("buckets").append(...BUCKETS.map(([value, name]) => el("label", {}, el("input", { type: "radio", name: "bucket", value, checked: value === "", onchange: () => { bucket = value; find(); } }), el("span", {}, name))));
  byId("add-open").addEventListener("click", () => { byId("add-form").hidden = false; byId("add-name").focus(); });
  byId("add-close").addEventListener("click", closeForm);
  byId("add-form").addEventListener("keydown", (event) => { if (event.key === "Escape") closeForm(); });
  byId("add-form").addEventListener("submit", (event) => { event.preventDefault(); add(); });
  walkWithArrows(byId("label-list"));
  wide.addEventListener("change", place);
  onBack(() => { if (!byId("view-labels").hidden) find(); });
}

export function allowChanges(allowed) {
  mayChange = allowed;
  byId("add-open").hidden = !allowed;
}

export function showLabels(chosen) {
  if (!byId("label-list").children.length) find();
  if (chosen !== null) look(chosen);
  else if (id === null) fill(byId("label"), el("p", { class: "empty" }, note));
}

async function find(more = false) {
  running?.abort();
  running = new AbortController();
  const mine = running;
  offset = more === true ? offset + PAGE : 0;
  const query = new URLSearchParams({ q: byId("find").value, offset, limit: PAGE });
  if (bucket) query.set("bucket", bucket);
  const answer = await attempt(() => ask(`labels?${query}`, { signal: mine.signal }), (sentence) => { byId("found").textContent = capital(sentence); });
  if (mine !== running || !answer) return;
  byId("found").textContent = answer.total ? counted(answer.total, "label") : "No label has this in its name. Fewer letters find more.";
  if (offset === 0) fill(byId("label-list"));
  byId("label-list").append(...answer.labels.map(row));
  byId("more").hidden = offset + answer.labels.length >= answer.total;
  mark();
  place();
}

function row(label) {
  return el("li", {}, el("button", { type: "button", class: "row", "data-id": label.id, onclick: () => { location.hash = `#/labels/${label.id}`; } },
    el("span", { class: "name" }, label.label),
    el("span", { class: "about" }, badge(label.bucket), counted(label.train_queries, "training text"))));
}

async function look(chosen) {
  const within = byId("label").contains(document.activeElement);
  id = chosen;
  mark();
  place();
  looking?.abort();
  looking = new AbortController();
  const mine = looking;
  const answer = await attempt(() => ask(`labels/${chosen}/neighbours?top=12`, { signal: mine.signal }), (sentence) => { fill(byId("label"), el("p", { class: "problem" }, capital(sentence))); });
  if (mine !== looking || !answer) return;
  const { label, neighbours } = answer;
  fill(byId("label"),
    el("header", { class: "panel-head" }, el("h2", {}, label.label),
      el("p", { class: "about" }, badge(label.bucket), counted(label.train_queries, "training text"), el("span", {}, `id ${label.uid}`))),
    label.text && label.text !== label.label ? el("section", {}, el("h3", {}, "Described as"), el("p", {}, label.text)) : null,
    el("section", {}, el("h3", {}, "Nearest labels"), el("ol", { class: "results small" }, neighbours.map(neighbour))),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "button plain", onclick: () => tryText(label.text || label.label, label.uid) }, "Try its description"), mayChange ? remover(label) : null));
  if (within) byId("label").focus();
  if (!wide.matches) byId("label").scrollIntoView({ block: "start" });
}

function neighbour(label) {
  return el("li", {}, el("button", { type: "button", class: "row", onclick: () => { location.hash = `#/labels/${label.id}`; } },
    el("span", { class: "name" }, label.label), el("span", { class: "score" }, hundredths(label.score)), bar(label.score),
    el("span", { class: "about" }, badge(label.bucket), counted(label.train_queries, "training text"))));
}

// Asks once more, in the same place.
function remover(label) {
  const button = el("button", { type: "button", class: "button plain" }, "Remove …");
  let sure = false;
  button.addEventListener("click", async () => {
    if (!sure) {
      sure = true;
      button.textContent = `Really remove “${label.label}”`;
      button.classList.add("danger");
      return;
    }
    const answer = await attempt(() => ask("labels/remove", { body: { uids: [label.uid] } }));
    if (!answer) return;
    id = null;
    note = `“${label.label}” is removed, until the model is loaded again.`;
    location.hash = "#/labels";
    find();
  });
  button.addEventListener("blur", () => { sure = false; button.textContent = "Remove …"; button.classList.remove("danger"); });
  return button;
}

async function add() {
  const name = byId("add-name").value.trim(), text = byId("add-text").value.trim();
  const queries = byId("add-queries").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const label = { name, queries };
  if (text) label.text = text;
  byId("add-problem").hidden = true;
  const answer = await attempt(() => ask("labels", { body: { labels: [label], save: byId("add-save").checked } }), (sentence) => {
    byId("add-problem").textContent = capital(sentence);
    byId("add-problem").hidden = false;
  });
  if (!answer) return;
  closeForm();
  fill(byId("label-list"));
  byId("find").value = "";
  tryText(queries[0] || text || name, answer.labels[0].uid);
}

function closeForm() {
  byId("add-form").reset();
  byId("add-form").hidden = true;
  byId("add-problem").hidden = true;
  byId("add-open").focus();
}

function mark() {
  for (const button of byId("label-list").querySelectorAll("button.row[data-id]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.id) === id));
  }
}

// Beside the list where there is room; else above it.
function place() {
  const panel = byId("label"), split = document.querySelector("#view-labels .split");
  panel.hidden = !wide.matches && id === null;
  if (wide.matches) split.append(panel);
  else split.prepend(panel);
}
