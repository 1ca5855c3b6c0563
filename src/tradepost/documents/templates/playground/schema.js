// The schema, from introspection.

const TYPE = `kind name ${"ofType { kind name ".repeat(7)}${"}".repeat(7)}`;
const INPUT = `name description type { ${TYPE} } defaultValue isDeprecated deprecationReason`;

export const INTROSPECTION = `query Introspection {
  __schema {
    description
    queryType { name } mutationType { name } subscriptionType { name }
    types {
      kind name description
      fields(includeDeprecated: true) {
        name description isDeprecated deprecationReason
        args(includeDeprecated: true) { ${INPUT} }
        type { ${TYPE} }
      }
      inputFields(includeDeprecated: true) { ${INPUT} }
      interfaces { name }
      possibleTypes { name }
      enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
    }
    directives { name description args(includeDeprecated: true) { ${INPUT} } }
  }
}`;

const ROOTS = ["query", "mutation", "subscription"];
const TYPENAME = {
  name: "__typename",
  description: "The name of the object's type.",
  args: [],
  type: { kind: "NON_NULL", ofType: { kind: "SCALAR", name: "String" } },
};
const PLACEHOLDERS = { Int: "0", Float: "0", Boolean: "false" };

export class Schema {
  constructor({ description, types, directives, ...rootTypes }) {
    this.description = description;
    this.types = new Map(types.map((type) => [type.name, type]));
    this.directives = directives;
    const named = ROOTS.filter((root) => rootTypes[`${root}Type`]);
    this.roots = new Map(named.map((root) => [root, this.types.get(rootTypes[`${root}Type`].name)]));
  }

  // The type of a reference, without its list and non-null wrappers.
  named(ref) {
    return this.types.get(bare(ref));
  }

  // The fields that can be selected from a type.
  fields(type) {
    return [...(type.fields ?? []), TYPENAME];
  }

  field(type, name) {
    return this.fields(type).find((each) => each.name === name);
  }

  // Whether two types share an object type, so that a fragment on one can be spread in the other.
  overlap(one, other) {
    const objects = (type) => [type.name, ...(type.possibleTypes ?? []).map((each) => each.name)];
    return objects(one).some((name) => objects(other).includes(name));
  }

  // A minimal selection of a field: its required arguments and the id of the object.
  skeleton(field, depth = 0) {
    const needed = field.args.filter(required);
    const args = needed.map((each) => `${each.name}: ${this.placeholder(each.type)}`).join(", ");
    const call = field.name + (args && `(${args})`);
    const type = this.named(field.type);
    if (!composite(type)) return call;
    return depth > 2 ? `${call} { __typename }` : `${call} { ${this.skeleton(this.#first(type), depth + 1)} }`;
  }

  placeholder(ref) {
    if (ref.kind === "NON_NULL") return this.placeholder(ref.ofType);
    if (ref.kind === "LIST") return `[${this.placeholder(ref.ofType)}]`;
    const type = this.named(ref);
    if (type?.kind === "ENUM") return type.enumValues[0].name;
    if (type?.kind !== "INPUT_OBJECT") return PLACEHOLDERS[type?.name] ?? '""';
    const needed = type.inputFields.filter(required);
    return `{${needed.map((each) => `${each.name}: ${this.placeholder(each.type)}`).join(", ")}}`;
  }

  #first(type) {
    const free = (type.fields ?? []).filter((field) => !field.args.some(required));
    const leaf = free.find((field) => !composite(this.named(field.type)));
    const known = ["id", "nodes"].map((name) => free.find((field) => field.name === name));
    return known.find(Boolean) ?? leaf ?? TYPENAME;
  }
}

// `[LineItem!]!`
export function written(ref) {
  if (ref.kind === "NON_NULL") return `${written(ref.ofType)}!`;
  return ref.kind === "LIST" ? `[${written(ref.ofType)}]` : ref.name;
}

// The type name without the list and non-null wrappers.
export function bare(ref) {
  return ref.ofType ? bare(ref.ofType) : ref.name;
}

export function required(input) {
  return input.type.kind === "NON_NULL" && input.defaultValue === null;
}

export function composite(type) {
  return ["OBJECT", "INTERFACE", "UNION"].includes(type?.kind);
}
