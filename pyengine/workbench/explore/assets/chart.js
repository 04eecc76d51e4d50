// Curves of several runs as SVG: elements and attributes alone, so that the page needs no inline style.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDE = 440, HIGH = 330, LEFT = 62, RIGHT = 12, TOP = 10, BOTTOM = 44;
const DEEPEST = 12; // decades that a logarithmic axis shows at most

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size < 1e-3 || size >= 1e5 ? value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e")
    : String(Number(value.toPrecision(4)));
}

// Round numbers within [low, high]: decades on a logarithmic axis, else some five of them.
function ticks(low, high, log) {
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first) / 5)), found = [];
    for (let k = last; k >= first; k -= step) found.push(10 ** k);
    return found;
  }
  const raw = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= raw * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : (v) => v, a = f(low), b = f(high);
  const there = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  const back = (p) => { const v = a + ((p - from) / (to - from)) * (b - a); return log ? 10 ** v : v; };
  return { there, back };
}

function range(values, log, whole) {
  const usable = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  if (!usable.length) return log ? [1e-6, 1] : [0, 1];
  let low = Math.min(...usable), high = Math.max(...usable);
  if (log) {
    high = 10 ** Math.ceil(Math.log10(high) - 1e-9);
    low = Math.max(10 ** Math.floor(Math.log10(low) + 1e-9), high * 10 ** -DEEPEST);
    if (low >= high) low = high / 10;
  } else {
    low = whole ? 0 : Math.min(0, low);
    if (whole) high = 1;
    else if (high <= low) high = low + 1;
  }
  return [low, high];
}

// The value of a curve at x, between its points.
function at(curve, x, logX, logY) {
  const k = curve.x.findIndex((v) => v >= x);
  if (k < 0) return null;
  if (k === 0) return curve.x[0] === x ? curve.y[0] : null;
  const f = logX ? Math.log : (v) => v;
  const t = (f(x) - f(curve.x[k - 1])) / (f(curve.x[k]) - f(curve.x[k - 1]));
  const a = curve.y[k - 1], b = curve.y[k];
  return logY && a > 0 && b > 0 ? Math.exp((1 - t) * Math.log(a) + t * Math.log(b)) : (1 - t) * a + t * b;
}

// Draw `curves`, each {series, name, x, y}, into a box that says what its axes are.
function drawChart(box, curves) {
  const log = box.dataset.log || "", logX = log.includes("x"), logY = log.includes("y");
  const unit = box.dataset.curve === "trade_off";
  const [x0, x1] = range(curves.flatMap((c) => c.x), logX, unit);
  const [y0, y1] = range(curves.flatMap((c) => c.y), logY, unit);
  const X = scale(x0, x1, LEFT, WIDE - RIGHT, logX), Y = scale(y0, y1, HIGH - BOTTOM, TOP, logY);
  const title = box.parentElement.querySelector("h3").textContent;
  const svg = element("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
  svg.append(element("title", {}, `${title}: ${curves.map((c) => c.name).join(", ") || "no run"}`));
  for (const v of ticks(x0, x1, logX)) {
    const p = X.there(v);
    svg.append(element("path", { class: "grid", d: `M${p} ${TOP}V${HIGH - BOTTOM}` }));
    svg.append(element("text", { x: p, y: HIGH - BOTTOM + 16, "text-anchor": "middle" }, short(v)));
  }
  for (const v of ticks(y0, y1, logY)) {
    const p = Y.there(v);
    svg.append(element("path", { class: "grid", d: `M${LEFT} ${p}H${WIDE - RIGHT}` }));
    svg.append(element("text", { x: LEFT - 6, y: p + 4, "text-anchor": "end" }, short(v)));
  }
  svg.append(element("rect", { class: "frame", x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: HIGH - TOP - BOTTOM }));
  svg.append(element("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 8, "text-anchor": "middle" }, box.dataset.x));
  const middle = (TOP + HIGH - BOTTOM) / 2;
  svg.append(element("text", { x: 14, y: middle, transform: `rotate(-90 14 ${middle})`, "text-anchor": "middle" }, box.dataset.y));
  if (unit) svg.append(element("path", { class: "guess", d: `M${X.there(0)} ${Y.there(1)}L${X.there(1)} ${Y.there(0)}` }));
  const clamp = (v) => Math.min(Math.max(v, y0), y1);
  for (const curve of curves) {
    let d = "";
    curve.x.forEach((x, i) => {
      if ((logY && curve.y[i] < y0) || x < x0 || x > x1) return;
      d += `${d ? "L" : "M"}${X.there(x).toFixed(2)} ${Y.there(clamp(curve.y[i])).toFixed(2)}`;
    });
    if (d) svg.append(element("path", { class: `curve series-${curve.series}`, d }));
  }
  const here = element("path", { class: "here", d: "" });
  svg.append(here);
  const readout = document.createElement("div");
  readout.className = "readout";
  const read = (event) => {
    const place = svg.getBoundingClientRect();
    const p = ((event.clientX - place.left) / place.width) * WIDE;
    if (p < LEFT || p > WIDE - RIGHT) return;
    const x = X.back(p);
    here.setAttribute("d", `M${p} ${TOP}V${HIGH - BOTTOM}`);
    const said = curves.map((c) => [c.name, at(c, x, logX, logY)]).filter(([, y]) => y !== null);
    readout.textContent = `at ${short(x)}: ${said.map(([name, y]) => `${name} ${short(y)}`).join(", ")}`;
  };
  svg.addEventListener("pointermove", read);
  svg.addEventListener("pointerdown", read);
  svg.addEventListener("pointerleave", () => { here.setAttribute("d", ""); readout.textContent = ""; });
  box.replaceChildren(svg, readout);
}
