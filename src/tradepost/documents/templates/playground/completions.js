// Completions at a position of a document, and the position at which a field of the schema can be inserted.

import { bare, composite, written } from "./schema.js";

const WORDS = ["query", "mutation", "subscription", "fragment"];
const NEVER_COMPLETED = ["comment", "string", "number"];

// `{from, to, items}`: the completions for the word around `caret`. An item is
// `{text, insert, detail, description, deprecated}`.
export function completions(reading, schema, caret) {
  const touching = reading.tokens.find((each) => each.at < caret && caret <= each.end);
  if (touching && NEVER_COMPLETED.includes(touching.kind)) return null;
  const word = touching && !["space", "mark", "bad"].includes(touching.kind) ? touching : null;
  const from = word ? word.at : caret;
  const start = reading.text.slice(from, caret).toLowerCase();
  const matches = candidates(reading, schema, from).filter((each) => each.text.toLowerCase().includes(start));
  const begins = (each) => (each.text.toLowerCase().startsWith(start) ? 0 : 1);
  return { from, to: word ? word.end : caret, items: matches.sort((one, other) => begins(one) - begins(other)) };
}

function candidates(reading, schema, at) {
  const before = reading.tokens.filter((each) => each.end <= at && !["space", "comment"].includes(each.kind));
  const [previous, second] = [before.at(-1), before.at(-2)];
  const region = innermost(reading.regions, at);
  if (reading.text[at] === "@") return schema.directives.map((each) => item(`@${each.name}`, "", each));
  if (previous?.text === "on" && previous.kind === "keyword") return types(schema, composite);
  if (previous?.text === "...") return fragments(reading);
  if (!region) return WORDS.filter((each) => each === "fragment" || schema.roots.has(each)).map((each) => item(each));
  return IN[region.kind]({ reading, schema, region, at, previous, second });
}

const IN = {
  selection: ({ schema, region }) => {
    const fields = region.type ? schema.fields(region.type) : [];
    return fields.map((each) => item(each.name, written(each.type), each));
  },
  arguments: (place) => pairs(place),
  object: (place) => pairs(place),
  list: ({ reading, schema, region, at }) => values(reading, schema, region.ref, at),
  variables: ({ schema, previous }) =>
    [":", "["].includes(previous?.text) ? types(schema, (type) => !composite(type)) : [],
};

function pairs({ reading, schema, region, at, previous, second }) {
  const inputs = region.inputs ?? [];
  if (previous?.text === ":") {
    const input = inputs.find((each) => each.name === second?.text);
    return input ? values(reading, schema, input.type, at) : [];
  }
  const word = reading.tokens.find((each) => each.at === at)?.text;
  const free = inputs.filter((each) => each.name === word || !region.names.includes(each.name));
  return free.map((each) => item(each.name, written(each.type), each, `${each.name}: `));
}

function values(reading, schema, ref, at) {
  const type = ref && schema.named(ref);
  const operation = reading.operations.find((each) => each.at <= at && at <= (each.end ?? Infinity));
  const variables = (operation?.variables ?? []).filter((each) => !type || bare(each.type) === type.name);
  const named = variables.map((each) => item(each.token.text, written(each.type)));
  if (type?.kind === "ENUM") return [...type.enumValues.map((each) => item(each.name, type.name, each)), ...named];
  if (type?.name === "Boolean") return [item("true"), item("false"), ...named];
  return named;
}

function fragments(reading) {
  return [item("on", "type"), ...reading.fragments.map((each) => item(each.name, "fragment"))];
}

function types(schema, wanted) {
  const fitting = [...schema.types.values()].filter((type) => wanted(type) && !type.name.startsWith("__"));
  return fitting.map((type) => item(type.name, type.kind.toLowerCase().replace("_", " "), type));
}

function item(text, detail = "", about = {}, insert = text) {
  const description = about.deprecationReason ?? about.description ?? "";
  return { text, insert, detail, description, deprecated: about.isDeprecated ?? false };
}

function innermost(regions, at) {
  return regions.filter((each) => each.at <= at && at <= each.end).sort((one, other) => other.at - one.at)[0];
}

// Where to insert a field of a type: `{at, text}`, or null if the document selects nothing from that type.
export function placed(reading, schema, type, field, caret) {
  const skeleton = schema.skeleton(field);
  const fitting = reading.regions.filter((each) => each.kind === "selection" && each.type === type);
  const region = innermost(fitting, caret) ?? fitting.at(-1);
  if (region) return { at: region.end, text: `\n${skeleton}\n` };
  const [kind] = [...schema.roots].find(([, root]) => root === type) ?? [];
  if (!kind) return null;
  const names = reading.operations.map((each) => each.name);
  const wish = field.name[0].toUpperCase() + field.name.slice(1);
  const name = names.includes(wish) ? `${wish}${names.length + 1}` : wish;
  return { at: reading.text.length, text: `\n\n${kind} ${name} { ${skeleton} }\n` };
}
