// A round-robin queue: one FIFO per caller, which take turns however long one of them is.

export class RoundRobin<T> {
  readonly #lines = new Map<string, T[]>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  add(caller: string, item: T): void {
    const line = this.#lines.get(caller)
    if (line) line.push(item)
    else this.#lines.set(caller, [item])
  }

  /** Puts an item first in its caller's FIFO, and makes that caller the next. */
  addFirst(caller: string, item: T): void {
    const others = [...this.#lines]
    const own = this.#lines.get(caller) ?? []
    this.#lines.clear()
    this.#lines.set(caller, [item, ...own])
    for (const [name, line] of others) if (name !== caller) this.#lines.set(name, line)
  }

  /** Takes the next item of a caller that `mayHave` accepts; undefined when there is none. */
  take(mayHave: (caller: string) => boolean = () => true): T | undefined {
    for (const [caller, line] of this.#lines) {
      if (!mayHave(caller)) continue
      this.#lines.delete(caller)
      const item = line.shift()
      if (line.length > 0) this.#lines.set(caller, line)
      return item
    }
    return undefined
  }

  /** Removes an item; returns false when it does not wait any more. */
  remove(caller: string, item: T): boolean {
    const line = this.#lines.get(caller)
    const at = line?.indexOf(item) ?? -1
    if (!line || at < 0) return false
    line.splice(at, 1)
    if (line.length === 0) this.#lines.delete(caller)
    return true
  }
}
