// Answers without their digests, for tests of what leaves digests out: impacts, explanations, earlier versions.

const DIGESTS = /,"digest":"[0-9a-f]{16}","answer_digest":"[0-9a-f]{16}"\}/g

/** The text of an answer to a poll, without both digests. Those that are malformed or not last stay. */
export function withoutDigests(text: string): string {
  return text.replaceAll(DIGESTS, '}')
}
