"use strict";
// The page: asks the server, shows the answers, asks again when the watermark has moved.

const $ = (id) => document.getElementById(id);
const UNITS = { us: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const MOST_LINES = 8, POLL = 2000;
const state = { stores: {}, store: null, agg: null, keys: [], span: "24h", from: null, to: null, live: true, asked: 0, shown: null, last: null };

// --- the server

class Problem extends Error { constructor(status, text) { super(text); this.status = status; } }

async function ask(path, values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== undefined) query.append(name, one);
  const token = sessionStorage.getItem("sash token");
  let response;
  try {
    response = await fetch(path + (query.size ? "?" + query : ""), { headers: token ? { Authorization: "Bearer " + token } : {} });
  } catch { throw new Problem(0, "The server does not answer."); }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, body.error || "The server refused: " + response.status + ".");
  return body;
}
const of = (part) => "/api/stores/" + encodeURIComponent(state.store) + (part ? "/" + part : "");

// --- how things are written

const length = (text) => { const found = /^(\d+)([a-z]+)$/.exec(text || ""); return found ? Number(found[1]) * UNITS[found[2]] : NaN; };
const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const number = (value) => (value !== null && typeof value === "object" ? (Array.isArray(value) ? value : Object.values(value)).map(number).join(" – ") : value === null || value === undefined ? "–" : typeof value !== "number" ? String(value) : Math.abs(value) >= 1e5 ? short.format(value) : new Intl.NumberFormat("en", { maximumSignificantDigits: 5 }).format(value));
const moment = (text) => (text ? text.replace("T", " ").replace(/(:00)?(\.\d+)?Z$/, "") : "–");
const iso = (ms) => new Date(ms).toISOString();
function ago(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const s = Math.max(0, seconds), [n, unit] = s < 120 ? [s, "s"] : s < 7200 ? [s / 60, "min"] : s < 172800 ? [s / 3600, "h"] : [s / 86400, "days"];
  return count.format(n) + " " + unit + " behind the clock";
}
function bytes(n) { for (const unit of ["B", "KB", "MB", "GB"]) { if (n < 1000 || unit === "GB") return (n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)) + " " + unit; n /= 1000; } }
function element(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) name === "onclick" ? made.addEventListener("click", value) : name === "style" ? (made.style.cssText = value) : made.setAttribute(name, value);
  made.append(...inside.filter((one) => one !== null));
  return made;
}
function problem(text) { if ($("problem").textContent !== (text || "")) { $("problem").textContent = text || ""; $("problem").hidden = !text; } }

// --- what is asked

const facts = () => state.stores[state.store];
const grain = () => Math.max(facts().grain_us / 1000, 1);

function range() {
  if (!state.live && state.from !== null) return { from: iso(Math.floor(state.from / grain()) * grain()), to: iso(Math.ceil(state.to / grain()) * grain()) };
  return state.span === "all" ? {} : { from: state.span };
}

async function show() {
  const asked = ++state.asked, now = facts();
  save();
  if (!now || now.error || !now.complete_to) { nothing(now); return; }
  const first = Date.parse(now.first), complete = Date.parse(now.complete_to);
  if (!state.live && state.from !== null && (state.to <= first || state.from >= complete)) { state.from = Math.max(first, Math.min(state.from, complete - grain())); state.to = Math.max(state.to, state.from + grain()); }
  const asks = { agg: state.agg, ...range() };
  try {
    const points = Math.max(60, Math.min(800, Math.round($("chart").clientWidth / 3)));
    const provisional = now.provisional ? "true" : null;
    const [answer, top] = await Promise.all([
      ask(of("range"), { ...asks, key: state.keys, step: "auto", points, explain: "true", provisional }),
      now.key.length ? ask(of("top"), { ...asks, n: 12, provisional }).catch((error) => { if (error.status !== 400) throw error; return { rows: [], keys: 0, said: error.message }; }) : null,
    ]);
    if (asked !== state.asked) return; // a newer question is on its way
    problem(null);
    state.shown = answer.watermark + "/" + (answer.provisional?.batch ?? "");
    await draw(answer, now);
    drawTop(top, now);
    drawFacts(answer);
  } catch (error) { if (asked === state.asked) failed(error); }
}

function failed(error) {
  if (error.status === 401) { askToken(sessionStorage.getItem("sash token") ? "That token is not one of this server's." : null); return; }
  if (error.status === 409) { nothing(facts()); return; }
  problem(error.message);
}

function nothing(now) {
  $("chart").hidden = true; $("empty").hidden = false; $("chart-title").textContent = state.agg ?? "Chart";
  $("empty").textContent = now?.error || "No slice is complete yet. The chart appears when the stream's watermark has passed the first one.";
  $("top").replaceChildren(element("li", { class: "quiet" }, "Nobody yet.")); $("as-table").hidden = true; $("answer").textContent = ""; $("step").textContent = ""; $("table").replaceChildren(); $("top-range").textContent = "";
  problem(null);
  drawFacts(null);
}

// --- what is shown

function lines(answer) {
  const found = new Map(), keyed = state.keys.length > 0, columns = facts().key;
  for (const row of answer.rows) {
    const key = keyed ? columns.map((name) => row[name]).join(",") : "all keys", value = row[state.agg];
    const fields = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [[null, value]];
    for (const [field, one] of fields) {
      if (field === null && found.has(key + "\u0000.")) continue; // an empty step of a result with fields
      const name = field === null ? key : key + " · " + field, place = field === null ? key : key + "\u0000." + field;
      if (field !== null) found.set(key + "\u0000.", null);
      if (!found.has(place)) found.set(place, { name, key, x: [], y: [] });
      const line = found.get(place);
      line.x.push(Date.parse(row.time));
      line.y.push(typeof one === "number" ? one : typeof one === "boolean" ? Number(one) : one === null || one === undefined ? null : Number.isFinite(Number(one)) ? Number(one) : null);
    }
  }
  const all = [...found.values()].filter(Boolean);
  return all.some((line) => line.name.includes(" · ")) ? all.filter((line) => line.name.includes(" · ")) : all;
}

async function draw(answer, now) {
  const drawn = lines(answer), from = Date.parse(answer.from), to = Date.parse(answer.provisional?.to ?? answer.to);
  const empty = drawn.every((line) => line.y.every((y) => y === null));
  const about = state.agg + (now.aggs[state.agg].column ? ", " + now.aggs[state.agg].agg + " of " + now.aggs[state.agg].column : ", " + now.aggs[state.agg].agg);
  $("chart-title").textContent = about;
  $("step").textContent = moment(answer.from) + " to " + moment(answer.to) + (answer.step ? ", a point every " + answer.step : "");
  $("empty").hidden = !empty; $("chart").hidden = $("as-table").hidden = empty;
  if (empty) $("empty").textContent = "Nothing in this range that can be drawn.";
  else {
    const view = { from: state.live || state.from === null ? from : state.from, to: state.live || state.to === null ? Math.max(to, from + grain()) : state.to, complete: Date.parse(answer.complete_to), step: length(answer.step) || 0, provisional: Boolean(answer.provisional), fromZero: fromZero(drawn) };
    await Chart.draw(drawn, view);
    const last = drawn[0].y.filter((y) => y !== null).at(-1);
    $("chart").setAttribute("aria-label", about + " of " + (state.keys.join("; ") || "all keys together") + " from " + moment(answer.from) + " to " + moment(answer.to) + ". Last value " + number(last) + ". The same values are in the table below.");
  }
  $("answer").textContent = [...answer.notes, "Complete up to " + moment(answer.complete_to) + (answer.provisional ? "; provisional up to " + moment(answer.provisional.to) : "")].join(". ") + ".";
  drawTable(drawn, answer);
  chips();
}

// From zero where values come near it; elsewhere that would flatten what is to be seen.
function fromZero(drawn) {
  const values = drawn.flatMap((line) => line.y).filter((y) => y !== null);
  return Math.min(...values) >= 0 && Math.min(...values) < 0.5 * Math.max(...values);
}

function drawTable(drawn, answer) {
  const head = element("tr", {}, element("th", { scope: "col" }, "time"), ...drawn.map((line) => element("th", { scope: "col" }, line.name)));
  const rows = (drawn[0]?.x ?? []).map((x, i) => element("tr", {}, element("td", {}, moment(iso(x))), ...drawn.map((line) => element("td", {}, number(line.y[i])))));
  $("table").replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.slice(-1000))));
}

function drawTop(answer, now) {
  $("top-range").textContent = answer ? "of " + count.format(answer.keys) : "";
  if (!answer || !answer.rows.length) { $("top").replaceChildren(element("li", { class: "quiet" }, !answer ? "This store has no key." : answer.said || "Nobody in this range.")); return; }
  const value = (row) => { const found = row[state.agg]; return typeof found === "object" && found ? Number(Object.values(found).at(-1)) || 0 : Number(found) || 0; };
  const most = Math.max(...answer.rows.map((row) => Math.abs(value(row))), Number.MIN_VALUE);
  $("top").replaceChildren(...answer.rows.map((row) => {
    const key = now.key.map((name) => row[name]).join(","), written = now.key.length > 1 ? keyText(now.key.map((name) => row[name])) : String(row[now.key[0]]);
    const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("i", { style: "width:" + ((100 * Math.abs(value(row))) / most).toFixed(1) + "%" }));
    return element("li", {}, element("button", { type: "button", "aria-pressed": String(state.keys.includes(written)), title: "Show " + key, onclick: () => toggle(written) },
      element("span", { class: "name" }, key), element("span", { class: "value" }, number(row[state.agg])), bar));
  }));
}
const keyText = (values) => values.map((one) => (/[",\n]/.test(String(one)) ? '"' + String(one).replaceAll('"', '""') + '"' : String(one))).join(",");

function drawFacts(answer) {
  const now = facts(), set = (id, text) => { $(id).textContent = text; };
  set("f-watermark", moment(now?.watermark)); set("f-slices", now?.slices === undefined ? "–" : count.format(now.slices));
  set("f-lag", now?.watermark ? ago((Date.now() - Date.parse(now.watermark)) / 1000) : ""); set("f-grain", now?.grain ? "one per key and " + now.grain : "");
  set("f-took", answer ? answer.took_ms.toFixed(answer.took_ms < 10 ? 2 : 0) + " ms" : "–"); set("f-combines", answer ? count.format(answer.combines) + " combines" : "");
  set("f-step", answer?.step ?? "–"); set("f-levels", now?.levels ? "wheel levels " + now.levels.join(", ") : "");
  const badge = $("freshness"); badge.className = "badge" + (!now || now.error ? " bad" : "");
  badge.textContent = !now ? "no store" : now.error ? "store can't be read" : !now.complete_to ? "waiting for the first slice" : "complete up to " + moment(now.complete_to);
}

function spark(seconds) {
  if (seconds.length < 2) return "";
  const most = Math.max(...seconds, 0.001), w = 90, h = 22, path = seconds.map((s, i) => (i ? "L" : "M") + ((i * w) / (seconds.length - 1)).toFixed(1) + " " + (h - 1 - (s / most) * (h - 3)).toFixed(1)).join("");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [name, value] of Object.entries({ width: w, height: h, viewBox: `0 0 ${w} ${h}`, class: "spark", role: "img", "aria-label": "seconds of the last " + seconds.length + " batches" })) svg.setAttribute(name, value);
  line.setAttribute("d", path); svg.append(line);
  return svg;
}

function drawPipelines(found) {
  $("pipelines-note").textContent = found.length ? "" : "none runs in this server; sash run --serve shows its own here";
  if (!found.length) { $("pipelines").replaceChildren(); return; }
  const names = ["query", "state", "rows", "rows/s", "watermark", "late", "keys", "slices", "state size", "batch", "batch times"];
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  const rows = found.map((one) => element("tr", {}, element("th", { scope: "row" }, one.query), element("td", {}, element("span", { class: "state" + (one.active ? "" : " off") }, one.active ? "running" : "ended")),
    element("td", {}, count.format(one.rows)), element("td", {}, count.format(one.rows_per_second)),
    element("td", { title: one.watermark_us ? moment(iso(one.watermark_us / 1000)) : "" }, one.lag_seconds === null ? "–" : ago(one.lag_seconds)), element("td", { class: one.late ? "late" : "" }, count.format(one.late)),
    element("td", {}, count.format(one.keys)), element("td", {}, count.format(one.slices)), element("td", {}, bytes(one.state_bytes)),
    element("td", {}, one.batch_seconds.length ? one.batch_seconds.at(-1).toFixed(2) + " s" : "–"), element("td", {}, spark(one.batch_seconds))));
  for (const row of rows) [...row.children].forEach((cell, i) => { cell.dataset.name = names[i]; }); // a phone shows them beside the values
  $("pipelines").replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

// --- what is chosen

function chips() {
  $("chosen").replaceChildren(...state.keys.map((key, i) => element("li", {}, element("button", { type: "button", "aria-label": "Remove " + key, onclick: () => toggle(key) }, element("span", { class: "swatch", style: "background:" + Chart.color(i) }), key, element("span", { "aria-hidden": "true" }, "×")))));
  $("key").placeholder = state.keys.length ? "add a key" : "all keys together; type to choose";
}

function toggle(key) {
  state.keys = state.keys.includes(key) ? state.keys.filter((one) => one !== key) : [...state.keys, key].slice(-MOST_LINES);
  chips(); show();
}

let offered = [], active = -1, typed = 0;
async function suggest() {
  const mine = ++typed;
  if (!facts()?.key?.length) return;
  try {
    const found = await ask(of("keys"), { prefix: $("key").value.trim() || null, n: 50 });
    if (mine !== typed || document.activeElement !== $("key")) return;
    offered = found.keys; active = -1;
    const more = found.all - offered.length;
    $("suggestions").replaceChildren(...offered.map((key, i) => element("li", { role: "option", id: "s" + i, "aria-selected": "false", onclick: () => choose(key) }, key)), more > 0 ? element("li", { class: "more", role: "option", "aria-disabled": "true", "aria-selected": "false" }, count.format(more) + " more: type the beginning of one") : offered.length ? null : element("li", { class: "more", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "no key begins like this"));
    open(true);
  } catch (error) { failed(error); }
}
function open(yes) { $("suggestions").hidden = !yes; $("key").setAttribute("aria-expanded", String(yes)); if (!yes) $("key").removeAttribute("aria-activedescendant"); }
function choose(key) { $("key").value = ""; open(false); if (!state.keys.includes(key)) toggle(key); }
function mark(i) {
  active = i;
  [...$("suggestions").children].forEach((one, j) => one.setAttribute("aria-selected", String(j === i)));
  if (i >= 0) { $("key").setAttribute("aria-activedescendant", "s" + i); $("s" + i).scrollIntoView({ block: "nearest" }); }
}

function live(yes) {
  state.live = yes; $("live").setAttribute("aria-pressed", String(yes));
  document.querySelectorAll("[data-span]").forEach((button) => button.setAttribute("aria-pressed", String(yes && button.dataset.span === state.span)));
}
function span(text) { state.span = text; state.from = state.to = null; live(true); show(); }

function visible() {
  if (!state.live && state.from !== null) return [state.from, state.to];
  const now = facts(), to = Date.parse(now.complete_to);
  return [state.span === "all" ? Date.parse(now.first) : to - length(state.span), to];
}
function move(how) {
  if (!facts()?.complete_to) return;
  let [a, b] = visible();
  const width = b - a, middle = (a + b) / 2, by = { back: -0.5, on: 0.5 }[how];
  if (by) { a += by * width; b += by * width; } else { const half = (how === "in" ? 0.25 : 1) * width; a = middle - Math.max(half, grain()); b = middle + Math.max(half, grain()); }
  look(a, b);
}
function look(a, b) {
  if (a === null) { span(state.span); return; }
  state.from = a; state.to = Math.max(b, a + grain()); live(false); clearTimeout(look.wait); look.wait = setTimeout(show, 120);
}

// --- what is kept in the address

function save() {
  const kept = new URLSearchParams({ store: state.store ?? "", agg: state.agg ?? "", span: state.span });
  state.keys.forEach((key) => kept.append("key", key));
  if (!state.live && state.from !== null) { kept.set("from", iso(state.from)); kept.set("to", iso(state.to)); }
  history.replaceState(null, "", "#" + kept);
}
function restore() {
  const kept = new URLSearchParams(location.hash.slice(1));
  state.store = kept.get("store") || null; state.agg = kept.get("agg") || null; state.keys = kept.getAll("key").slice(0, MOST_LINES);
  if (kept.get("span") === "all" || length(kept.get("span"))) state.span = kept.get("span");
  const [a, b] = [Date.parse(kept.get("from")), Date.parse(kept.get("to"))];
  if (a < b) { state.from = a; state.to = b; state.live = false; }
}

// --- over time

function options(select, names, chosen) { if ([...select.options].map((o) => o.value).join("\n") !== names.join("\n")) select.replaceChildren(...names.map((name) => element("option", { value: name }, name))); select.value = chosen ?? ""; }

function pick(names) {
  if (!names.includes(state.store)) {
    if (state.store !== null) { state.keys = []; state.agg = null; } // a link that names no store means the first
    state.store = names[0] ?? null;
  }
  options($("store"), names, state.store);
  const aggs = Object.keys(facts()?.aggs ?? {});
  if (!aggs.includes(state.agg) && aggs.length) state.agg = aggs[0];
  if (aggs.length) options($("agg"), aggs, state.agg);
}

async function tick() {
  try {
    const [found, running] = await Promise.all([ask("/api/stores"), ask("/api/pipelines")]);
    $("token-form").hidden = true; $("main").hidden = false;
    const before = JSON.stringify(facts() ?? null);
    const known = state.stores;
    state.stores = Object.fromEntries(found.stores.map((one) => [one.store, one.error ? { ...known[one.store], error: one.error, complete_to: known[one.store]?.complete_to } : one]));
    pick(found.stores.map((one) => one.store));
    drawPipelines(running.pipelines);
    const now = facts();
    if (now?.error) { problem(now.error); drawFacts(state.last); }
    else if (JSON.stringify(now ?? null) !== before || state.shown === null) { live(state.live); await show(); }
    else if (!$("problem").hidden) await show();
    else drawLag();
  } catch (error) { failed(error); if (error.status !== 401) { $("freshness").className = "badge bad"; $("freshness").textContent = "no connection"; } }
  setTimeout(tick, $("token-form").hidden ? POLL : 1e9);
}
function drawLag() { const now = facts(); $("f-lag").textContent = now?.watermark ? ago((Date.now() - Date.parse(now.watermark)) / 1000) : ""; }

function askToken(why) { $("token-form").hidden = false; $("main").hidden = true; problem(null); $("token-why").textContent = why ?? "It is kept in this tab only."; $("freshness").textContent = "locked"; $("token").focus(); }

addEventListener("DOMContentLoaded", () => {
  restore();
  Chart.onMove(look);
  $("store").addEventListener("change", (event) => { state.store = event.target.value; state.keys = []; state.agg = null; state.from = state.to = null; live(true); pick(Object.keys(state.stores)); chips(); show(); });
  $("agg").addEventListener("change", (event) => { state.agg = event.target.value; show(); });
  document.querySelectorAll("[data-span]").forEach((button) => button.addEventListener("click", () => span(button.dataset.span)));
  document.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => move(button.dataset.move)));
  $("live").addEventListener("click", () => (state.live ? look(...visible()) : span(state.span)));
  $("chart").addEventListener("keydown", (event) => {
    const how = { ArrowLeft: "back", ArrowRight: "on", "+": "in", "=": "in", "-": "out" }[event.key];
    if (how) { event.preventDefault(); move(how); } else if (event.key.toLowerCase() === "l") span(state.span);
  });
  $("key").addEventListener("focus", suggest);
  $("key").addEventListener("input", suggest);
  $("key").addEventListener("blur", () => setTimeout(() => open(false), 150));
  $("key").addEventListener("keydown", (event) => {
    const many = offered.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); if (many) mark((active + (event.key === "ArrowDown" ? 1 : many - 1) + (active < 0 && event.key === "ArrowUp" ? 1 : 0)) % many); }
    else if (event.key === "Enter") { event.preventDefault(); const exact = offered.find((one) => one === $("key").value.trim()); if (active >= 0) choose(offered[active]); else if (exact !== undefined) choose(exact); }
    else if (event.key === "Escape") open(false);
    else if (event.key === "Backspace" && !$("key").value && state.keys.length) toggle(state.keys.at(-1));
  });
  $("token-form").addEventListener("submit", (event) => { event.preventDefault(); sessionStorage.setItem("sash token", $("token").value.trim()); $("token").value = ""; state.shown = null; tick(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; clearTimeout(look.wait); look.wait = setTimeout(show, 250); } });
  live(state.live);
  tick();
});
