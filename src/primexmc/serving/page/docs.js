// The OpenAPI document as a page: every path with what it takes and an example to copy.

import { byId, el, fill } from "./dom.js";

const REF = "#/components/schemas/";

function resolve(document, schema) {
  return schema?.$ref ? document.components.schemas[schema.$ref.slice(REF.length)] : schema;
}

function example(document, schema) {
  const shape = resolve(document, schema);
  if (shape?.examples) return shape.examples[0];
  if (shape?.type === "array") return [example(document, shape.items)];
  if (shape?.type !== "object" && !shape?.properties) return "…";
  const wanted = Object.entries(shape.properties).filter(([name, field]) => shape.required?.includes(name) || field.examples);
  return Object.fromEntries(wanted.map(([name, field]) => [name, example(document, field)]));
}

function limits(field) {
  const kinds = [field, ...(field.anyOf ?? [])].map((kind) => kind.type).filter((kind) => kind && kind !== "null");
  const words = [kinds.join(" or "), field.default !== undefined && field.default !== null ? `default ${JSON.stringify(field.default)}` : "", field.minimum !== undefined ? `from ${field.minimum}` : "", field.maximum !== undefined ? `to ${field.maximum}` : "", field.maxItems ? `at most ${field.maxItems} entries` : "", field.description ?? ""];
  return words.filter(Boolean).join(", ");
}

function operation(document, path, method, told) {
  const body = resolve(document, told.requestBody?.content["application/json"]?.schema);
  const fields = [...(told.parameters ?? []).map((one) => [one.name, { ...one.schema, description: one.description }]), ...Object.entries(body?.properties ?? {})];
  const command = body ? `curl -s ${location.origin}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(example(document, told.requestBody.content["application/json"].schema))}'` : `curl -s ${location.origin}${path.replace("{id}", "0")}`;
  return el("li", {},
    el("h2", {}, el("code", { class: "method" }, method.toUpperCase()), el("code", {}, path)),
    el("p", { class: "quiet" }, told.description ?? ""),
    fields.length ? el("ul", { class: "fields" }, fields.map(([name, field]) => el("li", {}, el("code", {}, name), el("span", { class: "quiet" }, limits(field))))) : null,
    el("pre", { tabIndex: 0 }, command));
}

const answer = await fetch("openapi.json").catch(() => null);
if (answer?.ok) {
  const document = await answer.json();
  fill(byId("paths"), Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, told]) => operation(document, path, method, told))));
} else {
  fill(byId("paths"), el("li", { class: "problem" }, "The server does not answer; load this page again when it is back."));
}
