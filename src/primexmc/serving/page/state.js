// Whether the server is there: a dot in the corner, a notice when it is not, and what to do when it is back.

import { ask, Away } from "./api.js";
import { byId, el, fill } from "./dom.js";

const LOOK_MS = 5000, LOOK_AGAIN_MS = 1500;
const whenBack = new Set();
let away = false, timer = 0;

export function onBack(work) { whenBack.add(work); }

// Runs work; what goes wrong is told where it is seen. Gives undefined then.
export async function attempt(work, tell = say) {
  try {
    return await work();
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    if (error instanceof Away) setAway(true);
    else tell(error.message);
    return undefined;
  }
}

export function say(sentence) {
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => { byId("notice").hidden = true; } }, "×");
  fill(byId("notice"), el("span", {}, capital(sentence)), close);
  byId("notice").className = "notice";
  byId("notice").hidden = false;
}

export const capital = (sentence) => sentence.charAt(0).toUpperCase() + sentence.slice(1);

function setAway(now) {
  clearTimeout(timer);
  timer = setTimeout(look, now ? LOOK_AGAIN_MS : LOOK_MS);
  byId("state").className = now ? "state away" : "state here";
  byId("state-text").textContent = now ? "no connection" : "connected";
  if (now === away) return;
  away = now;
  document.body.classList.toggle("is-away", away);
  if (away) {
    fill(byId("notice"), el("span", {}, el("strong", {}, "The server does not answer. "), "It may be starting again. What you have typed stays here, and labels come as soon as it is back."));
    byId("notice").className = "notice away";
    byId("notice").hidden = false;
  } else {
    byId("notice").hidden = true;
    for (const work of whenBack) work();
  }
}

export async function look() {
  clearTimeout(timer);
  try {
    await ask("ready");
    setAway(false);
  } catch {
    setAway(true);
  }
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
window.addEventListener("offline", () => setAway(true));
window.addEventListener("online", look);
