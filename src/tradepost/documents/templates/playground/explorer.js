// The schema explorer: the root types, a page for each type, a search, and buttons that insert a field.

import { button, element } from "./element.js";
import { bare, required, written } from "./schema.js";

const MAX_HITS = 80;
const KINDS = {
  OBJECT: ["type", "types"],
  INPUT_OBJECT: ["input", "inputs"],
  ENUM: ["enum", "enumerations"],
  SCALAR: ["scalar", "scalars"],
  INTERFACE: ["interface", "interfaces"],
  UNION: ["union", "unions"],
};

export class Explorer {
  #path = []; // the names of the types opened on the way here

  // `insert(type, field)` inserts a field into the document.
  constructor(root, search, insert) {
    this.root = root;
    this.search = search;
    this.insert = insert;
    search.addEventListener("input", () => this.#draw());
  }

  // Shows a schema, or the reason why there is none.
  show(schema, why = "") {
    this.schema = schema;
    this.search.disabled = !schema;
    if (schema) this.#draw();
    else this.root.replaceChildren(element("p", { class: "soft" }, ...prose(why)));
  }

  #draw() {
    const wanted = this.search.value.trim().toLowerCase();
    const type = this.schema.types.get(this.#path.at(-1));
    if (wanted) this.root.replaceChildren(...this.#hits(wanted));
    else this.root.replaceChildren(...(type ? this.#type(type) : this.#start()));
    this.root.scrollTop = 0;
  }

  #open(path) {
    this.#path = path;
    this.search.value = "";
    this.#draw();
    this.root.focus();
  }

  #start() {
    const types = [...this.schema.types.values()].filter((type) => !type.name.startsWith("__"));
    const roots = [...this.schema.roots.values()];
    const others = types.filter((type) => !roots.includes(type));
    return [
      ...paragraphs(this.schema.description),
      ...roots.flatMap((type) => this.#section(type)),
      ...Object.entries(KINDS).flatMap(([kind, [, word]]) => {
        const ofKind = others.filter((type) => type.kind === kind);
        if (!ofKind.length) return [];
        const items = ofKind.map((type) => element("li", {}, this.#link(type.name)));
        return [element("h3", {}, word), element("ul", { class: "names" }, ...items)];
      }),
    ];
  }

  #section(type) {
    const heading = element("h3", {}, this.#link(type.name));
    return [heading, element("ul", { class: "members" }, ...type.fields.map((each) => this.#member(type, each, true)))];
  }

  #type(type) {
    const trail = [button("Schema", () => this.#open([]), { class: "link" })];
    this.#path.slice(0, -1).forEach((name, i) => {
      trail.push(" / ", button(name, () => this.#open(this.#path.slice(0, i + 1)), { class: "link type" }));
    });
    const kind = element("span", { class: "soft" }, `${KINDS[type.kind][0]} `);
    return [
      element("nav", { class: "trail", "aria-label": "Breadcrumbs" }, ...trail),
      element("h3", {}, kind, element("span", { class: "type" }, type.name)),
      ...paragraphs(type.description),
      ...this.#members(type),
      ...this.#uses(type),
    ];
  }

  #members(type) {
    const members = type.fields ?? type.inputFields;
    if (members) return [element("ul", { class: "members" }, ...members.map((each) => this.#member(type, each)))];
    if (type.enumValues) return [element("ul", { class: "members" }, ...type.enumValues.map(enumValue))];
    const possible = (type.possibleTypes ?? []).map((each) => element("li", {}, this.#link(each.name)));
    return [element("ul", { class: "names" }, ...possible)];
  }

  // The fields and arguments that use a type.
  #uses(type) {
    const usages = [...this.schema.types.values()].filter((each) => !each.name.startsWith("__")).flatMap((owner) =>
      (owner.fields ?? owner.inputFields ?? [])
        .filter((each) => [each, ...(each.args ?? [])].some((one) => bare(one.type) === type.name))
        .map((each) => element("li", {}, this.#link(owner.name), `.${each.name}`)));
    return usages.length ? [element("h4", {}, "Used by"), element("ul", { class: "names" }, ...usages)] : [];
  }

  // One field; `brief` omits the descriptions of its arguments.
  #member(type, member, brief = false) {
    const args = this.#arguments(member.args);
    const head = element("p", { class: "head" }, called("field", member), ...args, ": ", this.#ref(member.type));
    if (!member.args && member.defaultValue !== null) head.append(` = ${member.defaultValue}`);
    if (member.args) {
      head.prepend(button("+", () => this.insert(type, member), {
        class: "plus",
        title: "Insert into the document",
        "aria-label": `Insert ${type.name}.${member.name} into the document`,
      }));
    }
    const about = brief ? [] : this.#about(member.args);
    return element("li", {}, head, ...deprecated(member), ...paragraphs(member.description), ...about);
  }

  #arguments(args) {
    if (!args?.length) return [];
    const each = args.flatMap((arg, i) => {
      const name = element("span", { class: required(arg) ? "argument needed" : "argument" }, arg.name);
      const preset = arg.defaultValue === null ? "" : ` = ${arg.defaultValue}`;
      return [i ? ", " : "", name, ": ", this.#ref(arg.type), preset];
    });
    return ["(", ...each, ")"];
  }

  #about(args) {
    const described = (args ?? []).filter((each) => each.description || each.isDeprecated);
    if (!described.length) return [];
    const lines = described.flatMap((each) => [
      element("dt", {}, called("argument", each)),
      element("dd", {}, ...prose(each.description ?? ""), ...deprecated(each)),
    ]);
    return [element("dl", { class: "about" }, ...lines)];
  }

  // A type reference whose name is a link to the type.
  #ref(ref) {
    const whole = written(ref);
    const name = bare(ref);
    const [before, after] = whole.split(name);
    return element("span", { class: "ref" }, before, this.#link(name), after);
  }

  #link(name) {
    const open = () => this.#open([...this.#path.filter((each) => each !== name), name]);
    return button(name, open, { class: "link type" });
  }

  #hits(wanted) {
    const hit = (text) => text?.toLowerCase().includes(wanted);
    const described = (each) => wanted.length > 2 && hit(each.description);
    const types = [...this.schema.types.values()].filter((type) => !type.name.startsWith("__"));
    const named = types.filter((type) => hit(type.name)).map((type) => element("li", {}, this.#link(type.name)));
    const members = types.flatMap((type) => (type.fields ?? type.inputFields ?? type.enumValues ?? [])
      .filter((each) => hit(`${type.name}.${each.name}`) || described(each))
      .map((each) => this.#hit(type, each)));
    const shown = [...named, ...members];
    const count = element("p", { class: "soft", role: "status" }, `${shown.length || "Nothing"} found`);
    return [count, element("ul", { class: "hits" }, ...shown.slice(0, MAX_HITS))];
  }

  #hit(type, member) {
    const line = element("li", {}, this.#link(type.name), ".", called("field", member));
    const about = element("span", { class: "soft small" }, ...prose(member.description ?? ""));
    if (member.description) line.append(element("br"), about);
    return line;
  }
}

// A coloured name, struck out if it is deprecated.
function called(kind, { name, isDeprecated }) {
  return element("span", { class: isDeprecated ? `${kind} old` : kind }, name);
}

function enumValue(value) {
  const head = element("p", { class: "head" }, called("enum", value));
  return element("li", {}, head, ...deprecated(value), ...paragraphs(value.description));
}

function deprecated({ isDeprecated, deprecationReason }) {
  return isDeprecated ? [element("p", { class: "deprecated" }, `Deprecated. ${deprecationReason ?? ""}`)] : [];
}

function paragraphs(description) {
  const texts = (description ?? "").split(/\n\n+/).filter(Boolean);
  return texts.map((each) => element("p", { class: "says" }, ...prose(each)));
}

// Descriptions contain no markup but `code`.
function prose(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? element("code", {}, part) : part));
}
