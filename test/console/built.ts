// Where tests build the console.
import { join } from 'node:path'

/** Not `dist`, which the tests of the package make anew. */
export const BUILT = join(import.meta.dirname, '../../node_modules/.cache/console')
