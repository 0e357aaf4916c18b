// A small line chart: few lines, named at their right end, coloured by the style sheet.

import { svg } from "./dom.js";

const WIDTH = 440, HEIGHT = 250, LEFT = 40, RIGHT = 70, TOP = 14, BOTTOM = 40, GAP = 17;

export function lineChart(title, lines, { fromZero = false } = {}) {
  const named = Object.entries(lines).filter(([, points]) => points.length);
  if (!named.length) return null;
  const all = named.flatMap(([, points]) => points);
  const xs = ticks(all.map(([x]) => x), true), ys = ticks(all.map(([, y]) => y).concat(fromZero ? [0] : []));
  const x = (value) => LEFT + ((value - xs[0]) / (xs.at(-1) - xs[0])) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - ys[0]) / (ys.at(-1) - ys[0])) * (HEIGHT - TOP - BOTTOM);
  const places = apart(named.map(([, points]) => y(points.at(-1)[1])));
  const decimals = Math.max(0, -Math.floor(Math.log10(ys[1] - ys[0]) + 1e-9));
  const spoken = named.map(([name, points]) => `${name} from ${points[0][1].toPrecision(3)} to ${points.at(-1)[1].toPrecision(3)}`).join("; ");
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} by epoch: ${spoken}.` },
    ...ys.flatMap((tick) => [svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }), svg("text", { class: "tick", x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toFixed(decimals))]),
    ...xs.map((tick) => svg("text", { class: "tick", x: x(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(tick))),
    svg("text", { class: "tick", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "epoch"),
    ...named.map(([name, points], at) => svg("g", { class: `series s${at % 4}` },
      svg("polyline", { points: points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" ") }),
      svg("circle", { cx: x(points.at(-1)[0]), cy: y(points.at(-1)[1]), r: 3 }),
      svg("text", { x: WIDTH - RIGHT + 9, y: places[at] + 4 }, name))));
}

// Round numbers around the values, 1, 2 or 5 times a power of ten apart.
function ticks(values, wholeOnly = false) {
  const low = Math.min(...values), high = Math.max(...values);
  const raw = (high - low) / 4 || Math.max(Math.abs(high), 1) / 4, power = 10 ** Math.floor(Math.log10(raw));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  if (wholeOnly) step = Math.max(1, Math.round(step));
  const first = Math.floor(low / step + 1e-9), last = Math.max(Math.ceil(high / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

// The same places, moved up where names would lie on each other.
function apart(places) {
  let lowest = HEIGHT - BOTTOM;
  const moved = [...places];
  for (const at of places.map((_, i) => i).sort((a, b) => places[b] - places[a])) {
    moved[at] = Math.min(moved[at], lowest);
    lowest = moved[at] - GAP;
  }
  return moved;
}
