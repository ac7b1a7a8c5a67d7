// Metrics of what the clusters are doing: read from a summary of the fleet that is made every few seconds.
import { Counter, Gauge, type Registry } from 'prom-client'
import { COLUMNS, type Column } from '../domain/status/status-words.ts'
import type { Engine } from '../engine/engine.ts'
import { addGauge } from './gauge.ts'

const STATES: Readonly<Record<Column, { readonly name: string; readonly help: string }>> = {
  contact: {
    name: 'flux_resourceset_clusters_contact',
    help: 'Live clusters by environment and by whether they are in contact.',
  },
  delivery: {
    name: 'flux_resourceset_clusters_delivery',
    help: 'Live clusters by environment and by how far what they are to have has come.',
  },
  health: {
    name: 'flux_resourceset_clusters_health',
    help: 'Live clusters by environment and by the health of their worst component.',
  },
}

export function addFleetMetrics(registry: Registry, { fleet }: Pick<Engine, 'fleet'>, now: () => Date): void {
  const registers = [registry]
  for (const column of COLUMNS)
    new Gauge({
      ...STATES[column],
      labelNames: ['environment', 'state'],
      registers,
      collect() {
        this.reset()
        for (const [environment, counts] of fleet.summary?.environments ?? [])
          for (const [state, count] of Object.entries(counts[column])) this.set({ environment, state }, count)
      },
    })
  new Gauge({
    name: 'flux_resourceset_clusters_problem',
    help: 'Live clusters that need somebody, each by its worst problem.',
    labelNames: ['problem'],
    registers,
    collect() {
      for (const [problem, count] of fleet.summary?.problems ?? []) this.set({ problem }, count)
    },
  })
  new Counter({
    name: 'flux_resourceset_reports_total',
    help: 'Reports of clusters on what they have applied.',
    registers,
    collect() {
      this.reset()
      this.inc(fleet.fleet.reportCount)
    },
  })
  const gauge = addGauge.bind(undefined, registry)
  const ageOf = (moment = 0): number => (moment === 0 ? 0 : Math.max(0, now().getTime() - moment) / 1000)
  gauge(
    'flux_resourceset_oldest_contact_seconds',
    'How long the live cluster has been silent that was heard of longest ago.',
    () => ageOf(fleet.summary?.oldestContact),
  )
  gauge(
    'flux_resourceset_clusters_behind',
    'Clusters in contact that were not served what they are to have yet.',
    () => fleet.summary?.behind ?? 0,
  )
  gauge('flux_resourceset_behind_seconds', 'How long the longest of them has been behind.', () =>
    ageOf(fleet.summary?.behindSince),
  )
  gauge(
    'flux_resourceset_notes_pending',
    'Notes of polls, reports and failures that are not in the store yet.',
    () => fleet.pendingNotes,
  )
}
