// Elements from plain data. Text is only ever put in as text, so nothing that a label or a training text says is markup.

export const byId = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const whole = (number) => new Intl.NumberFormat("en").format(number);
export const hundredths = (number) => number.toFixed(2).replace("-", "−");
export const percent = (share) => (share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`);
export const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);
export const counted = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;

export function bar(value, kind = "") {
  const share = el("span", { class: `fill ${kind}` });
  share.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return el("span", { class: "track", "aria-hidden": "true" }, share);
}

const MEANING = {
  head: "head: one of the few labels that make up the first third of all training pairs",
  torso: "torso: trained neither very often nor rarely",
  tail: "tail: a rare label; most labels are",
};

export const badge = (bucket) => el("span", { class: `badge ${bucket}`, title: MEANING[bucket] }, bucket);

// Up and down move through a list of buttons.
export function walkWithArrows(list) {
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const buttons = [...list.querySelectorAll("button.row")];
    const at = buttons.indexOf(document.activeElement);
    const next = buttons[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) { event.preventDefault(); next.focus(); }
  });
}
