// CodeMirror as the console uses it: in its colours, within its content security policy, and Tab leaves it.
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--tone-busy)' },
  { tag: [tags.string, tags.content], color: 'var(--tone-good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--tone-warn)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
])

const LOOK = EditorView.theme({
  '&': { fontSize: '0.8125rem', backgroundColor: 'var(--panel)', color: 'var(--mantine-color-text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': {
    fontFamily: 'var(--mantine-font-family-monospace)',
    lineHeight: '20px',
    overflow: 'auto',
  },
  '.cm-gutters': {
    backgroundColor: 'transparent',
    color: 'var(--mantine-color-dimmed)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-activeLine': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { boxShadow: 'inset 0 0 0 1px var(--line)' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'var(--tone-busy-back)',
  },
})

const MAX_HEIGHT = '32rem'
const LINE_PX = 20

export interface Editing {
  text(): string
  replace(text: string): void
  close(): void
}

interface Start {
  readonly parent: HTMLElement
  readonly label: string
  readonly describedBy: string
  readonly format: 'json' | 'yaml'
  readonly minRows: number
  readonly text: string
  readonly onChange: (text: string) => void
}

export function startEditing({
  parent,
  label,
  describedBy,
  format,
  minRows,
  text,
  onChange,
}: Start): Editing {
  let isReplacing = false
  const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        format === 'json' ? json() : yaml(),
        syntaxHighlighting(COLOURS),
        LOOK,
        EditorView.theme({
          '.cm-content, .cm-gutter': { minHeight: `${minRows * LINE_PX}px` },
          '&': { maxHeight: MAX_HEIGHT },
        }),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          'aria-label': label,
          'aria-describedby': describedBy,
          spellcheck: 'false',
        }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged && !isReplacing) onChange(state.doc.toString())
        }),
      ],
    }),
  })
  return {
    text: () => view.state.doc.toString(),
    replace(next) {
      const { doc } = view.state
      if (doc.toString() === next) return
      isReplacing = true
      view.dispatch({ changes: { from: 0, to: doc.length, insert: next } })
      isReplacing = false
    },
    close: () => view.destroy(),
  }
}
