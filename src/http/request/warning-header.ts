// Warnings as headers, for responses whose body has no place for them.

/** Most clients take 16 KiB of headers and no more. */
const MAX_WARNING_BYTES = 8 * 1024

export function warningHeaders(warnings: readonly string[]): string[] {
  let bytes = 0
  const fitting = warnings.map(toWarning).filter((text) => {
    bytes += text.length
    return bytes <= MAX_WARNING_BYTES
  })
  const more = warnings.length - fitting.length
  return more === 0 ? fitting : [...fitting, toWarning(`and ${more} more: a dry run tells all of them`)]
}

/** RFC 7234's miscellaneous persistent warning, as Kubernetes sends them; a header holds no more than ASCII. */
function toWarning(text: string): string {
  const plain = text.replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `299 flux-resourceset "${plain.replaceAll(/["\\]/g, '\\$&')}"`
}
