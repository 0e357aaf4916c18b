// Questions to the server: with the key, with a time limit, and with one clear error for each way to fail.

import { byId } from "./dom.js";

const PATIENCE_MS = 20000;
let key = sessionStorage.getItem("primexmc-key") || "";

export class Away extends Error {}
export class Refused extends Error {
  constructor(status, sentence, wait) { super(sentence); this.status = status; this.wait = wait; }
}

export async function ask(path, { body, signal } = {}) {
  const used = key, headers = key ? { Authorization: `Bearer ${key}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(PATIENCE_MS);
  const options = { method: body ? "POST" : "GET", headers, signal: signal ? AbortSignal.any([signal, limit]) : limit };
  if (body) options.body = JSON.stringify(body);
  let response, content;
  try {
    response = await fetch(path, options);
    content = await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Away();
  }
  if (response.status === 401) {
    if (used === key) await askForKey();
    return ask(path, { body, signal });
  }
  if (!response.ok) {
    throw new Refused(response.status, content.error || `the server answered ${response.status}.`, Number(response.headers.get("Retry-After")) || 0);
  }
  return content;
}

let asking = null;

function askForKey() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    dialog.showModal();
    byId("key-form").addEventListener("submit", () => {
      key = byId("key").value.trim();
      sessionStorage.setItem("primexmc-key", key);
      asking = null;
      resolve();
    }, { once: true });
  });
  return asking;
}

export const wasAborted = (error) => error.name === "AbortError";
