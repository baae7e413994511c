// Values kept in the browser: colours and the zone of times; the token for the session only. No cookies.

/** A kept value, or null, also where the browser forbids storage. */
export function recall(name, storage = "localStorage") {
  try {
    return window[storage].getItem(`rondel.${name}`);
  } catch {
    return null;
  }
}

export function keep(name, value, storage = "localStorage") {
  try {
    window[storage].setItem(`rondel.${name}`, value);
  } catch {
    // The value then counts until the page is closed.
  }
}
