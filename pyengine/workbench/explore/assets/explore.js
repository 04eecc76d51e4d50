// Sliders to questions, answers to figures and curves, and the state of all of it in the link.
"use strict";

const MOST = 4; // runs: as many as there are colours
const PATIENCE = 400; // ms until a question that is under way is given up for a newer one
const REST = 350; // ms without a change after which proofs are asked for
const MARK = { batch: ["batch_size", "dataset_size", "epochs"], rate: ["sampling_probability", "steps"] };
const page = crypto.randomUUID(); // this page's questions take the place of its own alone
const runs = [];
const shared = document.getElementById("shared");
let made = 0, linking = 0;

// ---- controls: a number and its slider, which runs over logarithms --------------------------------

function controlsOf(root) {
  return new Map([...root.querySelectorAll(".control")].map((c) => [c.dataset.name, c]));
}

function prepare(control, changed) {
  const number = control.querySelector(".value"), slider = control.querySelector(".slider");
  const low = Math.log(Number(slider.dataset.low)), high = Math.log(Number(slider.dataset.high));
  Object.assign(slider, { min: "0", max: "1000", step: "1" });
  const follow = () => {
    const value = Number(number.value);
    const place = value > 0 ? ((Math.log(value) - low) / (high - low)) * 1000 : 0;
    slider.value = String(Math.round(Math.min(Math.max(place, 0), 1000)));
    slider.setAttribute("aria-valuetext", number.value);
  };
  slider.addEventListener("input", () => {
    const value = Math.exp(low + (Number(slider.value) / 1000) * (high - low));
    number.value = String("whole" in number.dataset ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(3)));
    slider.setAttribute("aria-valuetext", number.value);
    changed();
  });
  number.addEventListener("input", () => { follow(); changed(); });
  control.follow = follow;
  follow();
}

// What a number field holds; null where it is none, which the server names.
function valueOf(control) {
  const text = control.querySelector(".value").value.trim();
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}

function set(control, text) {
  control.querySelector(".value").value = text;
  control.follow();
}

// ---- runs -----------------------------------------------------------------------------------------

function addRun(given) {
  const box = document.getElementById("run").content.firstElementChild.cloneNode(true);
  const run = { box, slot: `${page} ${made++}`, busy: false, dirty: false, proven: false, answer: null };
  run.controls = controlsOf(box);
  for (const [name, control] of run.controls) {
    const id = `${name}-${made}`;
    control.querySelector(".value").id = id;
    control.querySelector("label").htmlFor = id;
    prepare(control, () => change(run));
  }
  run.choices = new Map([...box.querySelectorAll("select")].map((s) => [s.dataset.name, s]));
  for (const choice of run.choices.values()) choice.addEventListener("change", () => change(run));
  for (const [name, text] of Object.entries(given)) {
    const choice = run.choices.get(name);
    if (choice && [...choice.options].some((o) => o.value === text)) choice.value = text;
    else if (run.controls.has(name)) set(run.controls.get(name), text);
  }
  box.querySelector(".remove").addEventListener("click", () => {
    runs.splice(runs.indexOf(run), 1);
    run.removed = true;
    box.remove();
    arrange();
    show();
  });
  runs.push(run);
  document.getElementById("runs").append(box);
  change(run);
}

// Names and colours follow the order; what does not count is hidden.
function arrange() {
  runs.forEach((run, i) => {
    run.name = `run ${i + 1}`;
    run.box.querySelector(".name").textContent = `Run ${i + 1}`;
    run.box.querySelector(".swatch").className = `swatch series-${i}`;
    run.box.querySelector(".remove").disabled = runs.length === 1;
    const by = run.choices.get("size").value, sampling = run.choices.get("sampling").value;
    for (const [kind, names] of Object.entries(MARK))
      for (const name of names) run.controls.get(name).hidden = kind !== by;
    if (sampling === "none") run.controls.get("sampling_probability").hidden = true;
    run.controls.get("dimension").hidden = run.choices.get("threat_model").value !== "relaxed";
  });
  document.getElementById("add").disabled = runs.length >= MOST;
  clearTimeout(linking); // browsers count how often it changes
  linking = setTimeout(() => {
    const state = link();
    if (state !== location.hash) history.replaceState(null, "", state);
  }, 100);
}

function settingsOf(run) {
  const found = {};
  for (const [name, control] of [...run.controls, ...controlsOf(shared)]) found[name] = valueOf(control);
  for (const [name, choice] of run.choices) found[name] = choice.value;
  return found;
}

// ---- the link: #run=noise_multiplier=1,...&run=...&delta=1e-5 ---------------------------------------

function link() {
  const parts = runs.map((run) => {
    const words = [...run.choices].map(([name, choice]) => [name, choice.value]);
    const numbers = [...run.controls].filter(([, c]) => !c.hidden).map(([name, c]) => [name, c.querySelector(".value").value]);
    return `run=${[...words, ...numbers].map(([name, v]) => `${name}=${encodeURIComponent(v)}`).join(",")}`;
  });
  for (const [name, c] of controlsOf(shared)) parts.push(`${name}=${encodeURIComponent(c.querySelector(".value").value)}`);
  return `#${parts.join("&")}`;
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function read(hash) {
  const found = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    const cut = part.indexOf("="), name = part.slice(0, cut), rest = part.slice(cut + 1);
    const control = controlsOf(shared).get(name);
    if (name === "run")
      found.push(Object.fromEntries(rest.split(",").map((pair) => {
        const k = pair.indexOf("=");
        return [pair.slice(0, k), decoded(pair.slice(k + 1))];
      })));
    else if (control) set(control, decoded(rest));
  }
  return found.slice(0, MOST);
}

// ---- questions and answers --------------------------------------------------------------------------

function change(run) {
  arrange();
  run.proven = false;
  run.since = run.since || performance.now(); // the first change that no answer has seen
  clearTimeout(run.rest);
  run.rest = setTimeout(() => { run.proven = true; ask(run); }, REST);
  ask(run);
}

// One question of a run at a time: a newer one waits for its answer, but not for long.
async function ask(run) {
  if (run.removed) return;
  if (run.busy && performance.now() - run.began < PATIENCE) {
    run.dirty = true;
    clearTimeout(run.late);
    run.late = setTimeout(() => { if (run.busy && run.dirty) { run.dirty = false; send(run); } }, PATIENCE);
    return;
  }
  send(run);
}

async function send(run) {
  const serial = (run.serial = (run.serial || 0) + 1);
  run.busy = true;
  run.dirty = false;
  run.began = performance.now();
  say();
  let found;
  try {
    const answer = await fetch("/answers", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ slot: run.slot, settings: { ...settingsOf(run), proven: run.proven } }),
    });
    found = await answer.json();
  } catch {
    found = { error: "the server does not answer: is pyengine explore still running?", setting: "" };
  }
  if (serial !== run.serial) return; // a newer question is under way
  run.busy = false;
  if (!found.superseded && !run.removed) {
    run.milliseconds = performance.now() - run.began;
    if (!run.dirty) run.since = 0;
    tell(run, found);
  }
  if (run.dirty) send(run);
  else say();
}

function tell(run, found) {
  const problem = run.box.querySelector(".problem");
  const wrong = [...run.controls, ...controlsOf(shared)];
  for (const [, control] of wrong) control.classList.remove("wrong");
  problem.hidden = !found.error;
  problem.textContent = found.error || "";
  run.failed = Boolean(found.error);
  if (found.error) {
    const control = wrong.find(([name]) => name === found.setting);
    if (control) control[1].classList.add("wrong");
  } else {
    run.answer = found;
    run.box.querySelector(".words").textContent = [...found.mechanism, ...found.label]
      .map((text) => text.replace(/\.$/, "")).join("; ");
    run.box.querySelector(".short").textContent = `${found.figures[0].what}: ${found.figures[0].printed}`;
  }
  show();
}

function isLate(run) {
  return Boolean(run.since) && performance.now() - run.since > PATIENCE;
}

// Whether what is shown of a run is the answer to other settings than those beside it.
function isOld(run) {
  return Boolean(run.failed) || isLate(run);
}

function say() {
  const state = document.getElementById("state");
  const busy = runs.filter((run) => run.busy), failed = runs.filter((run) => run.failed);
  if (runs.some((run) => run.faint !== isOld(run))) show();
  if (runs.some(isLate)) state.textContent = "Computing… What is faint is of the settings before.";
  else if (busy.some((run) => performance.now() - run.began > PATIENCE)) state.textContent = "Computing…";
  else if (failed.length) state.textContent = "What could not be answered is faint: it is of the settings before.";
  else if (!busy.length)
    state.textContent = `Answered in ${Math.round(Math.max(0, ...runs.map((run) => run.milliseconds || 0)))} ms.`;
}
setInterval(say, 500);

// ---- what is shown ----------------------------------------------------------------------------------

function cell(name, text, kind) {
  const found = document.createElement(name);
  found.textContent = text;
  if (kind) found.className = kind;
  return found;
}

function show() {
  for (const run of runs) run.faint = isOld(run);
  const answered = runs.filter((run) => run.answer);
  const head = document.createElement("tr");
  const corner = cell("th", "at most");
  corner.scope = "col";
  head.append(corner);
  for (const run of runs) {
    const title = cell("th", "");
    title.scope = "col";
    title.append(cell("span", "", `swatch series-${runs.indexOf(run)}`), ` ${run.name}`);
    head.append(title);
  }
  const names = [...new Set(answered.flatMap((run) => run.answer.figures.map((f) => f.what)))];
  const rows = names.map((what) => {
    const row = document.createElement("tr"), title = cell("th", what);
    title.scope = "row";
    row.append(title);
    for (const run of runs) {
      const figure = run.answer && run.answer.figures.find((f) => f.what === what);
      const data = cell("td", figure ? figure.printed : "–", `number${run.faint ? " old" : ""}`);
      if (figure) data.append(" ", cell("span", figure.certainty, `word ${figure.certainty}`));
      row.append(data);
    }
    return row;
  });
  const table = document.getElementById("figures");
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows);
  for (const box of document.querySelectorAll(".chart"))
    drawChart(box, answered.map((run) => ({ series: runs.indexOf(run), name: run.name, ...run.answer.curves[box.dataset.curve] })));
}

// ---- start --------------------------------------------------------------------------------------------

for (const control of controlsOf(shared).values()) prepare(control, () => runs.forEach(change));

function start() {
  for (const run of runs.splice(0)) { run.removed = true; run.box.remove(); }
  const found = read(location.hash);
  for (const given of found.length ? found : [{}]) addRun(given);
}

document.getElementById("add").addEventListener("click", () => {
  const last = runs[runs.length - 1], given = {};
  for (const [name, choice] of last.choices) given[name] = choice.value;
  for (const [name, control] of last.controls) given[name] = control.querySelector(".value").value;
  addRun(given);
});
document.getElementById("copy").addEventListener("click", async () => {
  const said = document.getElementById("copied");
  history.replaceState(null, "", link());
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "Copied.";
  } catch {
    said.textContent = "The address of this page is the link.";
  }
  setTimeout(() => { said.textContent = ""; }, 3000);
});
addEventListener("hashchange", () => { clearTimeout(linking); start(); });
start();
