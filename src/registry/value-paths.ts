// Conflicts between Helm paths: no two of them may ask for contradicting values.
import { pointer } from '../base/json.ts'
import type { Detail } from '../base/problem.ts'

/** What a path makes of a value that it leads through. */
interface Holder {
  readonly name: string
  readonly isList: boolean
}

/** Helm fails on a value that also has to hold others, and on a list that also has to be an object. */
export function checkPaths(names: readonly string[]): Detail[] {
  const whole = new Map<string, string>()
  const holders = new Map<string, Holder>()
  const details: Detail[] = []
  for (const name of names) {
    const path = canonical(name)
    const twin = whole.get(path)
    if (twin === undefined) whole.set(path, name)
    else details.push({ path: pointer('', name), message: `is the same path as "${twin}": name it once` })
  }
  for (const name of names) {
    const message = contradiction(name, whole, holders)
    if (message) details.push({ path: pointer('', name), message: `${message}: leave one of them out` })
  }
  return details
}

/** `a[00]` is `a[0]`. */
function canonical(path: string): string {
  return path.includes('[0') ? path.replaceAll(/\[0+(?=\d)/g, '[') : path
}

function contradiction(
  name: string,
  whole: ReadonlyMap<string, string>,
  holders: Map<string, Holder>,
): string | undefined {
  const path = canonical(name)
  for (let i = 0; i < path.length; i++) {
    const char = path[i]
    // The character after a backslash is a part of the key.
    if (char === '\\') i++
    if (char !== '.' && char !== '[') continue
    const passed = path.slice(0, i)
    const value = whole.get(passed)
    if (value !== undefined) return `is a part of "${value}", which has a value of its own`
    const isList = char === '['
    const holder = holders.get(passed)
    if (!holder) holders.set(passed, { name, isList })
    else if (holder.isList !== isList) {
      const [a, b] = isList ? ['a list', 'an object'] : ['an object', 'a list']
      return `makes ${a} of what "${holder.name}" makes ${b}`
    }
  }
  return undefined
}
