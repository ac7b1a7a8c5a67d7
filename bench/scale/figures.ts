// A measured figure beside its target.

export interface Figure {
  readonly what: string
  readonly clusters: number
  readonly measured: number
  readonly unit: 's' | 'ms' | 'MB' | '×'
  /** The most that it may be; undefined where none was set for this size. */
  readonly target: number | undefined
  readonly remark?: string
}

/** A target for each size of fleet that has one. */
export type BySize = Readonly<Record<number, number>>

export const FIGURE_COLUMNS = ['what', 'clusters', 'target', 'measured', 'verdict', 'remark'] as const

export function rowOf({ what, clusters, measured, unit, target, remark = '' }: Figure): string[] {
  const show = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ${unit}`
  const verdict = target === undefined ? '' : measured <= target ? 'met' : '**missed**'
  const most = target === undefined ? '' : `≤ ${show(target)}`
  return [what, clusters.toLocaleString('en'), most, show(measured), verdict, remark]
}
