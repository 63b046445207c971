"use strict";
// The dashboard: follows server-sent events of one model and draws them; nothing is loaded from elsewhere.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let current = null; // the stream that is followed
let last = null; // what was drawn last

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function short(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

function ticks(low, high, wanted = 4) {
  const step = 10 ** Math.floor(Math.log10((high - low) / wanted || 1));
  const nice = [1, 2, 5, 10].map((k) => k * step).find((s) => (high - low) / s <= wanted) || step;
  const out = [];
  for (let value = Math.ceil(low / nice) * nice; value <= high + 1e-9 * nice; value += nice) out.push(value);
  return out;
}

// Lines over x, with marks; series are {name, class, y}
function lineChart(id, x, series, { marks = [], from = null, to = null, reference = null, xLabel = "rows" } = {}) {
  const place = byId(id);
  const width = Math.max(place.clientWidth, 260), height = width < 500 ? 190 : 230;
  const left = 52, right = 12, top = 10, bottom = 34;
  const shown = series.filter((s) => s.y.some((v) => v !== null));
  const values = shown.flatMap((s) => s.y.filter((v) => v !== null));
  if (!x.length || !values.length) {
    place.replaceChildren(element("p", { class: "note" }, "no row with a target yet"));
    return;
  }
  // a few first errors are very large; they are cut off rather than flattening all others
  const sorted = [...values].sort((a, b) => a - b);
  let high = to ?? Math.min(sorted[sorted.length - 1], 1.6 * sorted[Math.floor(0.97 * (sorted.length - 1))]);
  const low = from ?? 0;
  if (!(high > low)) high = low + 1;
  const x0 = Math.min(0, x[0]), x1 = Math.max(x[x.length - 1], x0 + 1);
  const px = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right);
  const py = (v) => top + (1 - (Math.min(Math.max(v, low), high) - low) / (high - low)) * (height - top - bottom);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const v of ticks(low, high)) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }));
    svg.append(shape("text", { x: left - 8, y: py(v) + 4, "text-anchor": "end" }, short(Number(v.toPrecision(6)))));
  }
  for (const v of ticks(x0, x1, width < 500 ? 3 : 6)) {
    svg.append(shape("text", { x: px(v), y: height - 16, "text-anchor": "middle" }, short(Number(v.toPrecision(6)))));
  }
  svg.append(shape("text", { x: width - right, y: height - 2, "text-anchor": "end" }, xLabel));
  if (reference !== null) {
    svg.append(shape("line", { class: "path mean", "stroke-dasharray": "5 4", x1: left, x2: width - right, y1: py(reference), y2: py(reference) }));
  }
  for (const mark of marks) {
    if (mark < x0 || mark > x1) continue;
    const line = shape("line", { class: "path change", x1: px(mark), x2: px(mark), y1: top, y2: height - bottom });
    line.append(shape("title", {}, `experts that began to learn near row ${short(mark)} took over`));
    svg.append(line);
  }
  for (const s of [...shown].reverse()) {
    let d = "", pen = "M";
    s.y.forEach((v, k) => {
      if (v === null) pen = "M";
      else { d += `${pen}${px(x[k]).toFixed(1)},${py(v).toFixed(1)}`; pen = "L"; }
    });
    if (shown.length && x.length === 1) d += "h2";
    svg.append(shape("path", { class: `path ${s.class}`, d }));
  }
  const legend = element("p", { class: "legend" });
  const entries = shown.map((s) => [s.name, s.class, ""]);
  if (reference !== null) entries.push([`${Math.round(100 * reference)} % wanted`, "mean", "dash"]);
  if (marks.length) entries.push([marks.length === 1 ? "change noticed" : `${marks.length} changes noticed`, "change", "dash"]);
  for (const [name, kind, dash] of entries) {
    const entry = element("span");
    entry.append(element("i", { class: `${kind} ${dash}` }), name);
    legend.append(entry);
  }
  place.replaceChildren(svg, legend);
}

function barsOverTime(id, values) {
  const place = byId(id);
  const width = Math.max(place.clientWidth, 260), height = width < 500 ? 190 : 230, left = 52, bottom = 34, top = 10;
  const high = Math.max(...values, 1);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const py = (v) => top + (1 - v / high) * (height - top - bottom);
  for (const v of ticks(0, high)) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - 12, y1: py(v), y2: py(v) }));
    svg.append(shape("text", { x: left - 8, y: py(v) + 4, "text-anchor": "end" }, short(v)));
  }
  const step = (width - left - 12) / values.length;
  values.forEach((v, k) => {
    if (v) svg.append(shape("rect", { class: "bars", x: left + k * step, width: Math.max(step - 0.6, 0.6), y: py(v), height: height - bottom - py(v) }));
  });
  svg.append(shape("text", { x: left, y: height - 16 }, "2 minutes ago"));
  svg.append(shape("text", { x: width - 12, y: height - 16, "text-anchor": "end" }, "now"));
  place.replaceChildren(svg);
}

function bars(id, pairs, format) {
  const high = Math.max(...pairs.map((pair) => pair[1]), 1e-300);
  byId(id).replaceChildren(...pairs.map(([name, value]) => {
    const row = element("div", { class: "bar" });
    const bar = element("progress", { max: "1", value: String(value / high), "aria-label": name });
    row.append(element("span", { title: name }, name), bar, element("span", {}, format(value)));
    return row;
  }));
}

function table(id, head, rows) {
  const place = byId(id), body = element("tbody"), top = element("tr");
  top.append(...head.map((text) => element("th", { scope: "col", title: text }, text)));
  for (const cells of rows) {
    const row = element("tr");
    row.append(...cells.map((cell) => element("td", { title: String(cell) }, cell)));
    body.append(row);
  }
  const thead = element("thead");
  thead.append(top);
  place.replaceChildren(thead, body);
}

function tiles(state) {
  const e = state.errors, number = state.task !== "classification";
  const found = [["rows", short(state.rows)]];
  if (state.keys !== null) found.push(["keys", short(state.keys)]);
  if (e.scored) {
    if (number) found.push(["RMSE", short(e.rmse)], ["RMSE, running mean", short(e.baseline_rmse)]);
    else found.push(["accuracy", `${(100 * e.accuracy).toFixed(1)} %`], ["accuracy, most frequent label", `${(100 * e.baseline_accuracy).toFixed(1)} %`]);
    if (e.linear_rmse !== undefined) found.push(["RMSE, linear model", short(e.linear_rmse)]);
    if (e.linear_accuracy !== undefined) found.push(["accuracy, linear model", `${(100 * e.linear_accuracy).toFixed(1)} %`]);
    if (e.coverage !== undefined) found.push(["inside the interval", `${(100 * e.coverage).toFixed(1)} %`]);
  }
  const rates = state.rates.slice(-5);
  found.push(["rows per second", short(Math.round(rates.reduce((a, b) => a + b, 0) / Math.max(rates.length, 1)))]);
  found.push(["changes noticed", short(state.changes.length)]);
  if (state.key !== null) found.push(["wait for a target", short(state.waiting)]);
  found.push(["requests in the queue", short(state.queue)], ["log, MB", short(state.log_bytes / 1e6)]);
  byId("tiles").replaceChildren(...found.map(([name, value]) => {
    const tile = element("div", { class: "tile" });
    tile.append(element("b", {}, value), element("span", {}, name));
    return tile;
  }));
}

function draw(state) {
  last = state;
  const number = state.task !== "classification", c = state.curves;
  document.title = `${state.name} – omkl`;
  byId("about").textContent = `${state.target} (${state.task ?? "task not known yet"}, ${state.learner}, ${Object.keys(state.columns).length} columns)`;
  const select = byId("model");
  select.hidden = state.models.length < 2;
  if (select.options.length !== state.models.length) {
    select.replaceChildren(...state.models.map((name) => element("option", { value: name }, name)));
  }
  select.value = state.name;
  tiles(state);
  byId("error-title").textContent = number ? "Error over time (RMSE)" : "Share of wrong labels over time";
  lineChart("error", c.ends, [
    { name: state.learner, class: "model", y: c.error },
    { name: number ? "running mean" : "most frequent label", class: "mean", y: c.baseline },
    { name: "linear model", class: "linear", y: c.linear },
  ], { marks: state.changes });
  byId("coverage-part").hidden = !c.coverage.length;
  if (c.coverage.length) {
    lineChart("coverage", c.ends, [{ name: "inside", class: "model", y: c.coverage }], { from: 0.5, to: 1, reference: 0.9 });
  }
  barsOverTime("rates", state.rates);
  const inputs = Object.entries(state.importance).sort((a, b) => b[1] - a[1]);
  byId("inputs-part").hidden = !inputs.length;
  bars("inputs", inputs, short);
  byId("kernels-part").hidden = !state.kernels.length;
  bars("kernels", state.kernels, (v) => `${(100 * v).toFixed(1)} %`);
  table("latency", ["request", "median, ms", "99 %, ms"], Object.entries(state.latencies).map(([verb, [p50, p99]]) => [verb, p50.toFixed(1), p99.toFixed(1)]));
  byId("notices-part").hidden = !state.notices.length;
  byId("latency-part").className = state.notices.length ? "" : "wide";
  byId("notices").replaceChildren(...state.notices.slice(-8).map((text) => element("li", {}, text)));
  const rows = [...state.last].reverse();
  const names = [...new Set(rows.flatMap(([row]) => Object.keys(row)))].filter((name) => name !== state.target).slice(0, 12);
  table("last", ["row", state.target, "prediction", ...(number ? ["interval"] : ["probability"]), ...names], rows.map(([row, answer]) => [
    short(answer.row), short(row[state.target]), short(answer.prediction),
    number ? (answer.interval ? answer.interval.map(short).join(" … ") : "–") : short(answer.probability),
    ...names.map((name) => short(row[name])),
  ]));
}

async function follow(name) {
  if (current) current.abort();
  const own = (current = new AbortController());
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  while (!own.signal.aborted) {
    try {
      if (!name) {
        const answer = await fetch("v1/models", { headers, signal: own.signal });
        if (answer.status === 401) return login(token ? "The token is wrong." : "");
        name = (await answer.json()).models[0]?.name;
        if (!name) throw new Error("there is no model yet");
      }
      const answer = await fetch(`v1/models/${encodeURIComponent(name)}/events`, { headers, signal: own.signal });
      if (answer.status === 401) return login("The token is wrong.");
      if (answer.status === 404) { name = null; continue; }
      if (!answer.ok) throw new Error((await answer.json()).error);
      byId("login").hidden = true;
      byId("main").hidden = false;
      await read(answer.body.getReader(), own);
      throw new Error("the service has stopped");
    } catch (error) {
      if (own.signal.aborted) return;
      byId("status").textContent = `${error.message}; trying again`;
      byId("status").className = "lost";
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
}

async function read(reader, own) {
  const decoder = new TextDecoder();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || own.signal.aborted) return;
    buffer += decoder.decode(value, { stream: true });
    const events = buffer.split("\n\n");
    buffer = events.pop();
    if (events.length) {
      byId("status").textContent = "live";
      byId("status").className = "";
      draw(JSON.parse(events[events.length - 1].slice(6)));
    }
  }
}

function login(message) {
  byId("main").hidden = true;
  byId("login").hidden = false;
  byId("refused").textContent = message;
  byId("status").textContent = "a token is needed";
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value.trim());
  follow(null);
});
byId("model").addEventListener("change", (event) => follow(event.target.value));
addEventListener("resize", () => last && draw(last));
follow(null);
