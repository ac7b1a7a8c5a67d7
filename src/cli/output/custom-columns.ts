// `-o custom-columns=NAME:PATH,…`: a table of columns of your own, as kubectl has it.
import { usage } from '../failure.ts'
import { compileJsonpath } from './jsonpath.ts'
import { renderTable } from './table.ts'
import { plain } from './terminal.ts'

const NONE = '<none>'

/** Returns a function that renders a document, or a list of them. */
export function compileColumns(text: string): (value: unknown) => string {
  const columns = text.split(/,(?![^[(]*[\])])/).map((column) => {
    const at = column.indexOf(':')
    const [name, path] = [column.slice(0, at).trim(), column.slice(at + 1).trim()]
    if (at < 1 || path === '')
      throw usage(`-o custom-columns must be like ID:.id,REGION:.labels.region, not "${column}"`)
    const inner = path.replace(/^\{|\}$/g, '')
    return { name, render: compileJsonpath(`{${inner.startsWith('.') ? inner : `.${inner}`}}`) }
  })
  return (value) => {
    const rows = (Array.isArray(value) ? value : [value]).map((each) =>
      columns.map(({ render }) => plain(render(each).trimEnd() || NONE)),
    )
    return renderTable(
      columns.map(({ name }) => name),
      rows,
    )
  }
}
