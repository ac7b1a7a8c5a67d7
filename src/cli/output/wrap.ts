// Text for people, broken between words where the terminal ends.
import { stripVTControlCharacters } from 'node:util'
import { widthOf } from './terminal.ts'

/** The least that is left of a line beside its indentation. */
const LEAST = 12

/** Breaks the lines that are too long for a stream; what is not on a terminal stays as it is. */
export function wrapFor(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>, text: string): string {
  if (!stream.isTTY) return text
  const width = stream.columns || 80
  return text
    .split('\n')
    .map((line) => (visible(line) > width ? wrapLine(line, width) : line))
    .join('\n')
}

/** Help is written for lines of this length: a line that is nearly so long goes on in the next one. */
const FULL = 90

/** Breaks help for a stream; on a narrow terminal its paragraphs are filled anew. */
export function wrapHelp(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>, text: string): string {
  const isNarrow = stream.isTTY && (stream.columns || 80) < 120
  return wrapFor(stream, isNarrow ? text.replaceAll(goesOn, '$1 ') : text)
}

const goesOn = new RegExp(`^(?=\\S)(.{${FULL},})\\n(?=\\S)`, 'gm')

function visible(text: string): number {
  return widthOf(stripVTControlCharacters(text))
}

/** What is broken off is as far in as the line itself, and what is aligned in it as far as that. */
function wrapLine(line: string, width: number): string {
  const [indent = ''] = /^ */.exec(line) ?? []
  const hanging = indent.length + 2 < width - LEAST ? ' '.repeat(indent.length + (indent === '' ? 0 : 2)) : ''
  const lines: string[] = []
  let current = indent
  for (const word of line.slice(indent.length).split(' ')) {
    const isFirst = current.trim() === ''
    if (!isFirst && visible(current) + 1 + visible(word) > width) {
      lines.push(current.trimEnd())
      current = `${hanging}${word}`
    } else {
      current = isFirst && word !== '' ? `${current}${word}` : `${current}${isFirst ? '' : ' '}${word}`
    }
  }
  return [...lines, current.trimEnd()].flatMap((each) => cutHard(each, width, hanging)).join('\n')
}

/** A word that is longer than the line is broken where the line ends. */
function cutHard(line: string, width: number, hanging: string): string[] {
  const parts: string[] = []
  let rest = line
  while (visible(rest) > width && stripVTControlCharacters(rest) === rest) {
    let end = width
    while (widthOf(rest.slice(0, end)) > width) end--
    parts.push(rest.slice(0, end))
    rest = hanging + rest.slice(end)
  }
  return [...parts, rest]
}
