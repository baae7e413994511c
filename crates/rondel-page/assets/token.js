// The token of the API, for this session of the browser.

import { keep, recall } from "./preferences.js";

let token = recall("token", "sessionStorage");

/** Takes a token, for this session of the browser. */
export function setToken(next) {
  token = next;
  keep("token", next, "sessionStorage");
}

/** Whether a token was given. */
export function hasToken() {
  return token !== null;
}

/** The header of requests with the token, if there is one. */
export function authorization() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}
