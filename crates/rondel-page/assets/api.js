// The data of the page: answers as docs/reference/openapi.yaml describes them, from a source that is set once. The served page
// requests them from the API; a report has them in its document.

/** An answer other than success. `status` 0: no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let source = null;

/** Sets the source: an object with `get`, `post` and `readEvents`. */
export function useSource(next) {
  source = next;
}

/** The JSON of an answer. */
export async function get(path, query, signal) {
  return source.get(path, query, signal);
}

export async function post(path, body) {
  return source.post(path, body);
}

/** Reads the stream until it ends. `onEvent(name, data)` gets each event, `onAlive` is called whenever anything arrives. */
export async function readEvents(options) {
  return source.readEvents(options);
}
