// Reads a GraphQL document while it is being written: recovers from every error, reports each with its
// position, and records what kind of text is expected in each region.

import { GRAPHQL, tokens } from "./tokens.js";
import { composite, required, written } from "./schema.js";

const LEAVES = {
  Int: (token) => token.kind === "number" && /^-?\d+$/.test(token.text),
  Float: (token) => token.kind === "number",
  Boolean: (token) => ["true", "false"].includes(token.text),
  String: (token) => token.kind === "string",
  ID: (token) => token.kind === "string" || /^-?\d+$/.test(token.text),
};

// `{tokens, operations, fragments, complaints, regions}`. A complaint is `{at, end, message, syntax}`; a
// region is `{kind, at, end, …}`, the text between a pair of brackets. Without a schema only the syntax is
// checked.
export function read(text, schema = null) {
  const reader = new Reader(text, schema);
  reader.document();
  return reader;
}

const CLOSING = [")", "]", "}"];
const NAME = { name: "name", type: { kind: "NON_NULL", ofType: { kind: "SCALAR", name: "String" } }, defaultValue: null };
const META = {
  __schema: { name: "__schema", args: [], type: { kind: "OBJECT", name: "__Schema" } },
  __type: { name: "__type", args: [NAME], type: { kind: "OBJECT", name: "__Type" } },
};

class Reader {
  #left;
  #depth = 0;

  constructor(text, schema) {
    this.text = text;
    this.schema = schema;
    this.tokens = tokens(text, GRAPHQL);
    this.#left = this.tokens.filter(({ kind }) => kind !== "space" && kind !== "comment");
    this.#left.reverse();
    this.operations = [];
    this.fragments = [];
    this.complaints = [];
    this.regions = [];
    this.spreads = [];
  }

  document() {
    while (this.#peek) this.#definition();
    this.#names();
    this.#uses();
    this.complaints.sort((one, other) => one.at - other.at);
  }

  #definition() {
    const start = this.#peek;
    if (start.text === "{" || this.#keyword("query", "mutation", "subscription")) this.#operation(start);
    else if (this.#keyword("fragment")) this.#fragment(start);
    else this.#unexpected("query, mutation, subscription, fragment or {");
  }

  #operation(start) {
    const kind = start.text === "{" ? "query" : start.text;
    const type = this.schema?.roots.get(kind);
    if (this.schema && !type) this.#complain(start, `The schema has no ${kind} type`);
    const name = this.#name("definition");
    const whole = { kind, name: name?.text ?? "", at: start.at, token: name ?? start, variables: [], uses: [] };
    this.operations.push(whole);
    this.uses = whole.uses;
    if (this.#peek?.text === "(") this.#variables(whole);
    this.#directives();
    this.#body(type, start);
    whole.end = this.last.end;
  }

  #fragment(start) {
    const name = this.#name("definition");
    if (!name) return this.#unexpected("a fragment name");
    const whole = { name: name.text, at: start.at, token: name, uses: [] };
    this.fragments.push(whole);
    this.uses = whole.uses;
    const type = this.#keyword("on") ? this.#condition() : this.#unexpected("on");
    this.#directives();
    this.#body(type, start);
    whole.end = this.last.end;
  }

  #body(type, start) {
    if (this.#peek?.text === "{") this.#selection(type);
    else this.#complain(this.last ?? start, "Expected a selection in { }", true);
  }

  // The variable definitions of an operation.
  #variables(operation) {
    this.#within("variables", {}, () => {
      const name = this.#take();
      if (name.kind !== "variable") return this.#wrong(name, "$ and a name");
      const type = this.#eat(":") ? this.#type() : this.#unexpected(":");
      const preset = this.#eat("=");
      if (preset) this.#value(type);
      this.#directives();
      if (type) operation.variables.push({ name: name.text.slice(1), token: name, type, preset: Boolean(preset) });
      return undefined;
    });
  }

  #type() {
    let ref;
    if (this.#eat("[")) {
      ref = { kind: "LIST", ofType: this.#type() };
      if (!this.#eat("]")) this.#unexpected("]");
    } else {
      const name = this.#name("type");
      if (!name) return this.#unexpected("a type");
      const known = this.schema?.types.get(name.text);
      if (this.schema && (!known || composite(known))) this.#complain(name, `${name.text} is not an input type`);
      ref = { kind: known?.kind, name: name.text };
    }
    return this.#eat("!") ? { kind: "NON_NULL", ofType: ref } : ref;
  }

  #selection(type) {
    const open = this.#peek;
    let count = 0;
    this.#within("selection", { type }, () => {
      count += 1;
      if (this.#eat("...")) this.#spread(type);
      else if (this.#peek.kind === "name") this.#field(type);
      else this.#unexpected("a field");
    });
    if (!count) this.#complain(open, "The selection is empty");
  }

  #field(type) {
    let name = this.#take();
    if (this.#eat(":")) {
      name.kind = "alias";
      if (this.#peek?.kind !== "name") return this.#unexpected("a field");
      name = this.#take();
    }
    name.kind = "field";
    const field = type ? this.schema.field(type, name.text) ?? this.#meta(type, name.text) : undefined;
    if (type && !field) {
      const near = like(name.text, this.schema.fields(type));
      this.#complain(name, `${type.name} has no field ${name.text}${near}`);
    }
    this.#arguments(name, field);
    this.#directives();
    return this.#inner(name, field);
  }

  #meta(type, name) {
    return type === this.schema.roots.get("query") ? META[name] : undefined;
  }

  #inner(name, field) {
    const type = field && this.schema.named(field.type);
    if (this.#peek?.text === "{") {
      if (type && !composite(type)) this.#complain(name, `${name.text} is ${written(field.type)}, which has no fields`);
      this.#selection(composite(type) ? type : undefined);
    } else if (composite(type)) {
      this.#complain(name, `${name.text} is ${written(field.type)}; select its fields in { }`);
    }
  }

  #spread(type) {
    if (this.#peek?.kind === "name" && this.#peek.text !== "on") {
      const name = this.#take();
      name.kind = "definition";
      this.spreads.push(name);
      return this.#directives();
    }
    const on = this.#keyword("on") ? this.#condition() : type;
    if (on && type && !this.schema.overlap(on, type)) this.#complain(this.last, `${type.name} is never ${on.name}`);
    this.#directives();
    return this.#body(on, this.last);
  }

  #condition() {
    const name = this.#name("type");
    if (!name) return this.#unexpected("a type");
    const type = this.schema?.types.get(name.text);
    if (this.schema && !composite(type)) this.#complain(name, `There is no object, interface or union type ${name.text}`);
    return composite(type) ? type : undefined;
  }

  #directives() {
    while (this.#peek?.kind === "directive") {
      const name = this.#take();
      const known = this.schema?.directives.find((each) => `@${each.name}` === name.text);
      if (this.schema && !known) this.#complain(name, `There is no directive ${name.text}`);
      this.#arguments(name, known);
    }
  }

  #arguments(name, owner) {
    const names = this.#peek?.text === "(" ? this.#pairs("arguments", owner?.args, owner?.name) : [];
    this.#missing(name, owner?.args, names);
  }

  // Reads `name: value` pairs and returns the names.
  #pairs(kind, inputs, owner) {
    const names = [];
    this.#within(kind, { inputs, names }, () => {
      const name = this.#name("argument");
      if (!name) return this.#unexpected("a name");
      names.push(name.text);
      const input = inputs?.find((each) => each.name === name.text);
      if (inputs && !input) this.#complain(name, `${owner} takes no ${name.text}${like(name.text, inputs)}`);
      return this.#eat(":") ? this.#value(input?.type) : this.#unexpected(":");
    });
    return names;
  }

  #missing(token, inputs, names) {
    const lacking = (inputs ?? []).filter((each) => required(each) && !names.includes(each.name));
    if (lacking.length) {
      const list = lacking.map((each) => `${each.name}: ${written(each.type)}`).join(", ");
      this.#complain(token, `${token.text === "{" ? "This" : token.text} needs ${list}`);
    }
  }

  #value(ref) {
    const token = this.#peek;
    const type = ref && this.schema?.named(ref);
    if (token?.text === "[") {
      const inner = ref?.kind === "NON_NULL" ? ref.ofType : ref;
      return this.#within("list", { ref }, () => this.#value(inner?.kind === "LIST" ? inner.ofType : undefined));
    }
    if (token?.text === "{") {
      const names = this.#pairs("object", type?.inputFields ?? undefined, type?.name);
      return this.#missing(token, type?.inputFields, names);
    }
    if (token?.kind === "variable") return this.uses.push(this.#take());
    if (!["string", "number", "name"].includes(token?.kind)) return this.#unexpected("a value");
    return this.#leaf(this.#take(), ref, type);
  }

  #leaf(token, ref, type) {
    if (token.kind === "name") token.kind = ["true", "false", "null"].includes(token.text) ? "keyword" : "enum";
    if (token.kind === "string" && !/^("""[^]*"""|"(\\.|[^"\\])*")$/.test(token.text)) {
      this.#complain(token, "Unterminated string", true);
    } else if (token.text === "null" ? ref?.kind === "NON_NULL" : type && !fits(token, type)) {
      this.#complain(token, `${token.text} is not ${written(ref)}`);
    }
  }

  // Calls `each` until the brackets are closed; any other closing bracket ends them too.
  #within(kind, about, each) {
    const open = this.#take();
    const close = { "{": "}", "(": ")", "[": "]" }[open.text];
    const region = { kind, at: open.end, end: this.text.length, ...about };
    this.regions.push(region);
    this.#depth += 1;
    while (this.#peek && !CLOSING.includes(this.#peek.text)) each();
    this.#depth -= 1;
    if (this.#peek) region.end = this.#peek.at;
    if (!this.#eat(close)) this.#complain(open, `${open.text} is never closed`, true);
  }

  // Duplicate names, and operations without a name beside others.
  #names() {
    for (const kind of [this.operations, this.fragments]) {
      for (const { name, token } of kind) {
        if (kind.length > 1 && !name) this.#complain(token, "With several operations, each needs a name");
        const first = kind.find((each) => each.name === name).token;
        if (name && first !== token) this.#complain(token, `${name} is defined twice`);
      }
    }
  }

  // Fragments and variables that are unknown or never used.
  #uses() {
    for (const name of this.spreads) {
      const known = this.fragments.some((each) => each.name === name.text);
      if (!known) this.#complain(name, `There is no fragment ${name.text}`);
    }
    for (const { name, token } of this.fragments) {
      if (!this.spreads.some((each) => each.text === name)) this.#complain(token, `${name} is never used`);
    }
    const shared = this.fragments.flatMap((each) => each.uses).map((each) => each.text);
    for (const { variables, uses } of this.operations) {
      for (const use of uses) {
        if (!variables.some((each) => each.token.text === use.text)) this.#complain(use, `${use.text} is not declared`);
      }
      for (const { token } of variables) {
        const used = shared.includes(token.text) || uses.some((each) => each.text === token.text);
        if (!used) this.#complain(token, `${token.text} is never used`);
      }
    }
  }

  get #peek() {
    return this.#left.at(-1);
  }

  #take() {
    this.last = this.#left.pop();
    return this.last;
  }

  #eat(text) {
    return this.#peek?.text === text ? this.#take() : undefined;
  }

  #keyword(...words) {
    if (this.#peek?.kind !== "name" || !words.includes(this.#peek.text)) return undefined;
    this.#peek.kind = "keyword";
    return this.#take();
  }

  #name(kind) {
    if (this.#peek?.kind !== "name") return undefined;
    this.#peek.kind = kind;
    return this.#take();
  }

  // Skips the unexpected token, unless it closes the open bracket.
  #unexpected(what) {
    const token = this.#peek;
    if (!token) this.#complain(this.last, `The document ends here; expected ${what}`, true);
    else this.#wrong(this.#depth && CLOSING.includes(token.text) ? token : this.#take(), what);
  }

  #wrong(token, what) {
    this.#complain(token, `Expected ${what} instead of ${token.text}`, true);
  }

  #complain({ at, end }, message, syntax = false) {
    this.complaints.push({ at, end, message, syntax });
  }
}

function fits(token, type) {
  if (type.kind === "ENUM") return type.enumValues.some((each) => each.name === token.text);
  return type.kind === "SCALAR" ? LEAVES[type.name]?.(token) ?? true : false;
}

// The required variables without a value, as `name: Type`.
export function missingVariables(operation, values) {
  const needed = operation.variables.filter((each) => each.type.kind === "NON_NULL" && !each.preset);
  return needed.filter((each) => values[each.name] == null).map((each) => `${each.name}: ${written(each.type)}`);
}

function like(name, known) {
  const near = known.map((each) => [distance(name.toLowerCase(), each.name.toLowerCase()), each.name]);
  const [best] = near.sort(([one], [other]) => one - other);
  return best && best[0] <= Math.max(1, name.length / 3) ? `; ${best[1]}?` : "";
}

// The Levenshtein distance.
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[other.length];
}
