// Counts long sentences and the habits of docs/writing.md: `node tools/prose/measure.ts [PAGE…]` lists them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { HABITS } from './habits.ts'

const ROOT = join(import.meta.dirname, '../..')
export const MAX_WORDS = 30
/** A list of changes, and pages that programs write. */
const NOT_PROSE = ['docs/cli-reference.md']

export interface Finding {
  readonly kind: string
  readonly text: string
}

export interface Measure {
  readonly words: number
  readonly sentences: number
  readonly long: readonly string[]
  readonly habits: readonly Finding[]
}

/** Every page that people write, the decisions among them. */
export function pagesOfProse(): string[] {
  const under = (folder: string): string[] =>
    readdirSync(join(ROOT, folder)).map((name) => (folder === '.' ? name : `${folder}/${name}`))
  return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...under('docs'), ...under('docs/decisions')]
    .filter((page) => page.endsWith('.md') && !NOT_PROSE.includes(page))
    .sort()
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

/** Stand for a piece of code while sentences are taken apart: its dots end none. */
const [OPEN, CLOSE] = ['\ue000', '\ue001']

/** Sentences as they stand on the page. Code is one word of one of them. */
export function sentencesIn(markdown: string): string[] {
  const pieces: string[] = []
  const restore = (text: string): string =>
    text.replaceAll(/\ue000(\d+)\ue001/g, (_, index) => pieces[Number(index)] ?? '')
  return blocksOf(markdown, (code) => `${OPEN}${pieces.push(code) - 1}${CLOSE}`)
    .flatMap(sentencesOf)
    .map(restore)
}

/** Paragraphs, list items and cells of tables: no sentence goes from one to the next. */
function blocksOf(markdown: string, mask: (code: string) => string): string[] {
  const prose = markdown
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replaceAll(/^( *)(`{3,}|~{3,})[\s\S]*?^\1\2 *$/gm, '\n')
    .replaceAll(/<!-- before and after -->[\s\S]*?<!-- end -->/g, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/``[^\n]*?``|`[^`]*`/g, mask)
    .replaceAll(/!?\[([^\]]*)\]\([^)\s]*(?: "[^"]*")?\)/g, '$1')
    .replaceAll(/[*_]{1,2}(?=\S)([^*_]*?\S)[*_]{1,2}/g, '$1')
  const blocks: string[] = []
  let block: string[] = []
  const end = (): void => {
    if (block.length > 0) blocks.push(block.join(' '))
    block = []
  }
  for (const line of prose.split('\n').map((each) => each.trim())) {
    if (line === '' || /^#/.test(line)) end()
    else if (line.startsWith('|')) {
      end()
      blocks.push(...line.split('|').map((cell) => cell.trim()))
    } else if (/^(?:[-*+]|\d+\.) /.test(line)) {
      end()
      block.push(line.replace(/^(?:[-*+]|\d+\.) /, ''))
    } else block.push(line)
  }
  end()
  return blocks.filter((each) => /\p{L}/u.test(each))
}

function sentencesOf(block: string): string[] {
  return block
    .split(/(?<=[.!?:]["”)]?)\s+(?=["“(]?[\p{Lu}\d\ue000])/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

function wordsOf(sentence: string): number {
  return sentence
    .replaceAll(/`[^`]*`/g, 'code')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

export function measure(markdown: string): Measure {
  const sentences = sentencesIn(markdown)
  return {
    words: sentences.reduce((sum, sentence) => sum + wordsOf(sentence), 0),
    sentences: sentences.length,
    long: sentences.filter((sentence) => wordsOf(sentence) > MAX_WORDS),
    habits: sentences.flatMap((sentence) =>
      HABITS.flatMap(({ name, pattern }) =>
        [...sentence.replaceAll(/`[^`]*`/g, 'code').matchAll(pattern)].map(() => ({
          kind: name,
          text: sentence,
        })),
      ),
    ),
  }
}

if (import.meta.main) {
  const asked = process.argv.slice(2)
  let total = { words: 0, long: 0, habits: 0 }
  for (const page of asked.length > 0 ? asked : pagesOfProse()) {
    const { words, long, habits } = measure(readPage(page))
    total = {
      words: total.words + words,
      long: total.long + long.length,
      habits: total.habits + habits.length,
    }
    console.log(
      `${page}: ${words} words, ${long.length} sentences over ${MAX_WORDS} words, ${habits.length} habits`,
    )
    if (asked.length === 0) continue
    for (const sentence of long) console.log(`  long (${wordsOf(sentence)}): ${sentence}`)
    for (const { kind, text } of habits) console.log(`  ${kind}: ${text}`)
  }
  console.log(`all: ${total.words} words, ${total.long} long sentences, ${total.habits} habits`)
}
