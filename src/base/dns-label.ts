// The names that Kubernetes gives to things: https://www.rfc-editor.org/rfc/rfc1123

/** A DNS label, as the source of a regular expression. */
export const DNS_LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?'
