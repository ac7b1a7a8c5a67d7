// Strings that V8 compares by address.

/** Returns an equal string that is cheaper to look up by: V8 keeps one of each property name. */
export function internalise(text: string): string {
  return Object.keys({ [text]: 0 })[0] as string
}
