// Puts the figures of docs/figures.json between the markers of the pages: `npm run figures`. Benchmarks do it themselves.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DERIVED, FIGURES } from './derived.ts'
import { loadTables, markdownOf, ROOT, type Tables } from './tables.ts'

const MARKED = /<!-- (table|figure): ([^>]+) -->([\s\S]*?)<!-- end -->/g

export function pagesWithFigures(): string[] {
  return globSync(['*.md', 'docs/*.md', 'docs/decisions/*.md'], { cwd: ROOT }).sort()
}

function tableOf(tables: Tables, name: string): string {
  const table = DERIVED[name]?.(tables) ?? tables[name]
  if (!table) throw new Error(`no table is called ${name}`)
  return `\n\n${markdownOf(table)}\n\n`
}

function figureOf(tables: Tables, name: string): string {
  const figure = FIGURES[name]?.(tables)
  if (figure === undefined) throw new Error(`no figure is called ${name}`)
  return figure
}

/** A page with the figures of today, and its own words. */
export function filled(text: string, tables: Tables): string {
  return text.replaceAll(MARKED, (_, kind: string, name: string) => {
    const content = kind === 'table' ? tableOf(tables, name) : figureOf(tables, name)
    return `<!-- ${kind}: ${name} -->${content}<!-- end -->`
  })
}

/** What a page says without its markers: the words of a person. */
export function unmarked(text: string): string {
  return text.replaceAll(MARKED, '')
}

export function fillPages(): void {
  const tables = loadTables()
  for (const page of pagesWithFigures()) {
    const text = readFileSync(join(ROOT, page), 'utf8')
    const next = filled(text, tables)
    if (next !== text) writeFileSync(join(ROOT, page), next)
  }
}

if (import.meta.main) fillPages()
