// The page: three views, chosen by what follows # in the address.

import { ask } from "./api.js";
import { byId, whole } from "./dom.js";
import { allowChanges, showLabels, startLabels } from "./labels.js";
import { showModel } from "./model.js";
import { attempt, look, onBack } from "./state.js";
import { knowsProbability, startTry } from "./try.js";

const VIEWS = ["try", "labels", "model"];

function show() {
  const [, view = "try", id] = location.hash.split("/");
  const name = VIEWS.includes(view) ? view : "try";
  for (const other of VIEWS) byId(`view-${other}`).hidden = other !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "labels") showLabels(id === undefined ? null : Number(id));
  if (name === "model") showModel();
  if (name === "try" && matchMedia("(hover: hover)").matches) byId("text").focus();
}

async function introduce() {
  const info = await attempt(() => ask("info"));
  if (!info) return;
  document.title = `${info.model} · primexmc`;
  byId("model-name").textContent = info.model;
  byId("try-lede").textContent = `Type or paste a text. The best of ${whole(info.labels)} labels come as you write; choose one to see why.`;
  byId("text").maxLength = info.limits.text_chars;
  allowChanges(info.can.change_labels);
  knowsProbability(info.can.probability);
}

document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement.tagName);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (byId("view-labels").hidden) { location.hash = "#/try"; byId("text").focus(); } else byId("find").focus();
});
window.addEventListener("hashchange", show);
onBack(introduce);
startLabels();
startTry();
show();
introduce();
look();
