// The page at /graphql: puts the editors, the schema, what runs and what came back together.

import { Editor } from "./editor.js";
import { Explorer } from "./explorer.js";
import { Popup } from "./popup.js";
import { Results } from "./results.js";
import { INTROSPECTION, Schema } from "./schema.js";
import { GRAPHQL, JSON_TEXT, tokens } from "./tokens.js";
import { ask, listen } from "./transport.js";
import { button, element } from "./element.js";
import { completions, placed } from "./completions.js";
import { draft, history, key } from "./kept.js";
import { missingVariables, read } from "./reader.js";
import { pretty } from "./pretty.js";

const ADDRESS = location.pathname;
const NO_KEY = "Enter an API key above to see the schema. `tradepost keys create` makes one.";
const at = (id) => document.getElementById(id);

let schema = null;
let reading = null; // of the document as it is now

const query = new Editor(at("query-editor"), (text) => (reading = read(text, schema)));
const variables = new Editor(at("variables-editor"), (text) => ({ tokens: tokens(text, JSON_TEXT) }));
const popup = new Popup(at("completions"), query, (caret) => schema && completions(reading, schema, caret));
const explorer = new Explorer(at("schema"), at("search"), insert);
const results = new Results(at("result"), jump);

// --- what is to run ---

function chosen() {
  return reading.operations.find((each) => each.name === at("operation").value) ?? reading.operations[0];
}

function given() {
  return variables.text.trim() ? JSON.parse(variables.text) : {};
}

// The operation the cursor is in is the one that runs, unless another is picked.
function follow() {
  const around = reading.operations.find((each) => each.at <= query.caret && query.caret <= each.end);
  if (around) at("operation").value = around.name;
  judge();
}

function offer() {
  const before = at("operation").value;
  const named = reading.operations.map((each) => element("option", { value: each.name }, each.name || each.kind));
  at("operation").replaceChildren(...named);
  if (reading.operations.some((each) => each.name === before)) at("operation").value = before;
  at("choice").hidden = reading.operations.length < 2;
}

// What is wrong with the document and the variables, below each.
function judge() {
  const [first, ...others] = reading.complaints;
  if (first) {
    const more = others.length ? ` and ${others.length} more` : "";
    const told = button(`${first.message}${more}`, () => query.select(first.at, first.end), { class: "link wrong" });
    at("query-strip").replaceChildren(told);
  } else {
    at("query-strip").textContent = schema ? "Fits the schema" : "";
  }
  at("variables-strip").textContent = lacking();
  at("variables-strip").classList.toggle("wrong", Boolean(lacking()));
}

function lacking() {
  try {
    const found = given();
    if (found === null || typeof found !== "object" || Array.isArray(found)) return "Variables are an object: { }";
    const missing = reading.operations.length ? missingVariables(chosen(), found) : [];
    return missing.length ? `Missing: ${missing.join(", ")}` : "";
  } catch (failure) {
    return `Not JSON: ${failure.message}`;
  }
}

// --- running ---

async function run() {
  popup.hide();
  let values;
  try {
    values = given();
  } catch {
    say("The variables are not JSON");
    return variables.area.focus();
  }
  const operation = chosen();
  const body = { query: query.text, variables: values };
  if (operation?.name) body.operationName = operation.name;
  history.add({ query: query.text, variables: variables.text, operation: operation?.name ?? "", at: Date.now() });
  show("result");
  const title = `${operation?.kind ?? "document"} ${operation?.name ?? ""}`.trim();
  return operation?.kind === "subscription" ? subscribe(title, body) : fetched(title, body);
}

async function fetched(title, body) {
  const stopping = new AbortController();
  const card = results.begin(title, () => stopping.abort());
  try {
    card.answered(await ask(ADDRESS, at("key").value.trim(), body, stopping.signal));
  } catch (failure) {
    card.failed(failure.name === "AbortError" ? "stopped" : `no answer: ${failure.message}`);
  }
}

function subscribe(title, body) {
  const card = results.begin(title, () => stop());
  const stop = listen(ADDRESS, at("key").value.trim(), body, {
    begun: () => card.listening(),
    next: (pushed) => card.pushed(pushed),
    failed: (errors) => card.refused(errors),
    ended: (why, well) => card.ended(why, well),
  });
}

function jump(line, column) {
  const lines = query.text.split("\n").slice(0, line - 1);
  const place = lines.join("\n").length + Math.min(lines.length, 1) + column - 1;
  const token = reading.tokens.find((each) => each.at <= place && place < each.end);
  show("query");
  query.select(place, token?.end ?? place);
}

// --- the schema ---

async function load() {
  key.write(at("key").value.trim());
  schema = null;
  if (at("key").value.trim()) await introspected();
  else explorer.show(null, NO_KEY);
  query.refresh();
  judge();
}

async function introspected() {
  explorer.show(null, "Reading the schema …");
  const asked = at("key").value.trim();
  let why;
  try {
    const { status, reason, body } = await ask(ADDRESS, asked, { query: INTROSPECTION });
    if (asked !== at("key").value.trim()) return; // a later answer counts
    if (body.data?.__schema) schema = new Schema(body.data.__schema);
    else why = body.errors?.[0]?.message ?? body.detail ?? `${status} ${reason}`;
  } catch (failure) {
    why = failure.message;
  }
  explorer.show(schema, `The schema could not be read. ${why}`);
}

// --- changing the document ---

function insert(type, field) {
  if (reading.complaints.some((each) => each.syntax)) return say("The document has an error; correct that first");
  const where = placed(reading, schema, type, field, query.caret);
  if (!where) return say(`Nothing in the document selects of ${type.name} yet`);
  const whole = query.text.slice(0, where.at) + where.text + query.text.slice(where.at);
  const blank = where.text.indexOf('""');
  layOut(whole, where.at + (blank < 0 ? where.text.trimEnd().length : blank + 1));
  return say(`${field.name} is in the document`);
}

// Replaces the document by `text` laid out; the cursor stays with the token that it is at in `text`.
function layOut(text, caret) {
  const visible = (whole) => tokens(whole, GRAPHQL).filter((each) => each.kind !== "space");
  const index = visible(text).findLastIndex((each) => each.at < caret);
  const laidOut = pretty(text);
  query.replace(0, query.text.length, laidOut);
  const token = visible(laidOut)[index];
  const place = token ? token.end - (token.text === '""' ? 1 : 0) : 0;
  query.select(place, place);
}

function prettify() {
  if (reading.complaints.some((each) => each.syntax)) return say("The document has an error; correct that first");
  const before = query.caret;
  try {
    const told = `${JSON.stringify(given(), null, 2)}\n`;
    if (variables.text.trim()) variables.replace(0, variables.text.length, told);
  } catch {
    say("The variables are not JSON");
  }
  return layOut(query.text, before);
}

// --- history ---

function listRuns() {
  const runs = history.read().map((each) => {
    const title = each.operation || each.query.trim().split("\n")[0];
    const again = button("", () => restore(each), { class: "run" });
    again.append(element("strong", {}, title), element("time", {}, new Date(each.at).toLocaleString()),
      element("code", {}, each.query.replace(/\s+/g, " ").slice(0, 160)));
    return element("li", {}, again);
  });
  at("runs").replaceChildren(...(runs.length ? runs : [element("li", { class: "soft" }, "Nothing ran yet")]));
}

function restore(before) {
  query.replace(0, query.text.length, before.query);
  variables.replace(0, variables.text.length, before.variables);
  at("history").close();
  at("operation").value = before.operation;
  query.select(0, 0);
  show("query");
}

// --- the page ---

// Where there is no room for all, one part at a time.
function show(view) {
  at("content").dataset.shown = view;
  document.querySelectorAll("[data-view]").forEach((each) => {
    each.setAttribute("aria-pressed", String(each.dataset.view === view));
  });
}

function say(text) {
  at("said").textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (at("said").textContent = ""), 4000);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !at("history").open) {
    event.preventDefault();
    run();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) draft.write({ query: query.text, variables: variables.text });
});
document.addEventListener("selectionchange", () => document.activeElement === query.area && follow());
query.addEventListener("input", () => {
  offer();
  follow();
});
variables.addEventListener("input", judge);
at("operation").addEventListener("change", judge);
at("run").addEventListener("click", run);
at("prettify").addEventListener("click", prettify);
at("key").addEventListener("change", load);
at("past").addEventListener("click", () => {
  listRuns();
  at("history").showModal();
});
at("leave").addEventListener("click", () => at("history").close());
at("forget").addEventListener("click", () => {
  history.clear();
  listRuns();
});
at("example").addEventListener("click", () => {
  restore({ query: query.area.defaultValue, variables: variables.area.defaultValue, operation: "" });
});
document.querySelectorAll("[data-view]").forEach((each) => {
  each.addEventListener("click", () => show(each.dataset.view));
});

const kept = draft.read();
at("key").value = key.read();
query.text = kept.query || query.area.defaultValue;
variables.text = kept.variables ?? variables.area.defaultValue;
load();
