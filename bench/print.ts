// What benchmarks print: tables for docs/benchmarks.md, and on a terminal what they are at.
import { fillPages } from '../tools/figures/fill.ts'
import { markdownOf, saveTable } from '../tools/figures/tables.ts'

/** BENCH_WRITE=0 leaves the pages as they are: for a try, or on a machine that is busy. */
export const WRITES = process.env.BENCH_WRITE !== '0'

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  console.log(markdownOf({ head, rows }))
}

/**
 * Prints a table and keeps it as docs/figures.json, from which every page takes its figures. A row takes the place of the
 * one with the same first cells, so many of them as `keys`; without `keys` the whole table is new.
 */
export function reportTable(
  name: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  keys?: number,
): void {
  printTable(head, rows)
  keepTable(name, head, rows, keys)
}

export function keepTable(
  name: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  keys?: number,
): void {
  if (!WRITES || rows.length === 0) return
  saveTable(name, { head, rows }, keys)
  fillPages()
}

export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}
