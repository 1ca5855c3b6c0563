// The page at /graphql: connects the editors, the schema explorer and the results.

import { Editor } from "./editor.js";
import { Explorer } from "./explorer.js";
import { Popup } from "./popup.js";
import { Results } from "./results.js";
import { INTROSPECTION, Schema } from "./schema.js";
import { GRAPHQL, JSON_TEXT, tokens } from "./tokens.js";
import { ask, listen } from "./transport.js";
import { button, element } from "./element.js";
import { completions, placed } from "./completions.js";
import { draft, history, key } from "./memory.js";
import { missingVariables, read } from "./reader.js";
import { pretty } from "./pretty.js";

const ADDRESS = location.pathname;
const NO_KEY = "Enter an API key above to see the schema. `tradepost keys create` makes one.";
const at = (id) => document.getElementById(id);

let schema = null;
let reading = null; // of the current document

const query = new Editor(at("query-editor"), (text) => (reading = read(text, schema)));
const variables = new Editor(at("variables-editor"), (text) => ({ tokens: tokens(text, JSON_TEXT) }));
const popup = new Popup(at("completions"), query, (caret) => schema && completions(reading, schema, caret));
const explorer = new Explorer(at("schema"), at("search"), insert);
const results = new Results(at("result"), jump);

// --- the operation to run ---

function chosen() {
  return reading.operations.find((each) => each.name === at("operation").value) ?? reading.operations[0];
}

function variableValues() {
  return variables.text.trim() ? JSON.parse(variables.text) : {};
}

// Selects the operation that contains the cursor.
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

// Shows the complaints about the document and the variables below their editors.
function judge() {
  const [first, ...others] = reading.complaints;
  if (first) {
    const more = others.length ? ` and ${others.length} more` : "";
    const link = button(`${first.message}${more}`, () => query.select(first.at, first.end), { class: "link wrong" });
    at("query-strip").replaceChildren(link);
  } else {
    at("query-strip").textContent = schema ? "Valid against the schema" : "";
  }
  at("variables-strip").textContent = lacking();
  at("variables-strip").classList.toggle("wrong", Boolean(lacking()));
}

function lacking() {
  try {
    const values = variableValues();
    if (values === null || typeof values !== "object" || Array.isArray(values)) return "Variables must be a JSON object";
    const missing = reading.operations.length ? missingVariables(chosen(), values) : [];
    return missing.length ? `Missing: ${missing.join(", ")}` : "";
  } catch (failure) {
    return `Invalid JSON: ${failure.message}`;
  }
}

// --- running ---

async function run() {
  popup.hide();
  let values;
  try {
    values = variableValues();
  } catch {
    say("The variables are not valid JSON");
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
    card.failed(failure.name === "AbortError" ? "stopped" : `no response: ${failure.message}`);
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
  explorer.show(null, "Loading the schema …");
  const sent = at("key").value.trim();
  let why;
  try {
    const { status, reason, body } = await ask(ADDRESS, sent, { query: INTROSPECTION });
    if (sent !== at("key").value.trim()) return; // another key was entered since
    if (body.data?.__schema) schema = new Schema(body.data.__schema);
    else why = body.errors?.[0]?.message ?? body.detail ?? `${status} ${reason}`;
  } catch (failure) {
    why = failure.message;
  }
  explorer.show(schema, `The schema could not be loaded. ${why}`);
}

// --- changing the document ---

function insert(type, field) {
  if (reading.complaints.some((each) => each.syntax)) return say("Correct the syntax error in the document first");
  const where = placed(reading, schema, type, field, query.caret);
  if (!where) return say(`The document selects nothing from ${type.name} yet`);
  const whole = query.text.slice(0, where.at) + where.text + query.text.slice(where.at);
  const blank = where.text.indexOf('""');
  layOut(whole, where.at + (blank < 0 ? where.text.trimEnd().length : blank + 1));
  return say(`Inserted ${field.name}`);
}

// Replaces the document with the formatted `text`; the cursor stays at the same token.
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
  if (reading.complaints.some((each) => each.syntax)) return say("Correct the syntax error in the document first");
  const before = query.caret;
  try {
    const formatted = `${JSON.stringify(variableValues(), null, 2)}\n`;
    if (variables.text.trim()) variables.replace(0, variables.text.length, formatted);
  } catch {
    say("The variables are not valid JSON");
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
  at("runs").replaceChildren(...(runs.length ? runs : [element("li", { class: "soft" }, "No operation has run yet")]));
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

// On narrow screens one pane is visible at a time.
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

const saved = draft.read();
at("key").value = key.read();
query.text = saved.query || query.area.defaultValue;
variables.text = saved.variables ?? variables.area.defaultValue;
load();
