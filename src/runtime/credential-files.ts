// Files with credentials: tokens, passwords, keys and certificates. Messages never tell what a file holds.
import { readFileSync } from 'node:fs'

export type ReadCredential =
  | { readonly ok: true; readonly text: string }
  /** `why` goes after the name of the file in a message. */
  | { readonly ok: false; readonly why: string; readonly cause: Error }

const FAILURES: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'is a folder, not a file',
  EACCES: 'this process may not read it',
}

/** Reads the file each time: it is replaced while the process runs, as a mounted Secret is. */
export function readCredential(path: string): ReadCredential {
  try {
    return { ok: true, text: readFileSync(path, 'utf8') }
  } catch (error) {
    const cause = error as NodeJS.ErrnoException
    const { code = '' } = cause
    return { ok: false, why: `${FAILURES[code] ?? 'cannot be read'} (${code})`, cause }
  }
}

/** Whether a private key in PEM needs a passphrase. */
export function isEncryptedKey(pem: string): boolean {
  return /^-----BEGIN ENCRYPTED |^Proc-Type:.*ENCRYPTED/m.test(pem)
}
