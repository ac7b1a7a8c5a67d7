// The store and the engine on it: the store of the settings, or the copy that a mirror keeps.
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { type Engine, startEngine } from '../engine/engine.ts'
import { openSnapshots } from '../engine/snapshot.ts'
import { createMetrics, type Metrics } from '../http/metrics.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { type Mirror, startMirror } from '../transfer/mirror.ts'
import { fillEmptyStore, fillLater } from './fill-store.ts'
import { checkSettings, readFirstToken, readSelector, statusSettings } from './parsed-settings.ts'

interface Stores {
  readonly engine: Engine
  readonly mirror: Mirror | undefined
  readonly metrics: Metrics
}

/** Opens the store, or the mirror's copy, starts the engine on it, and seeds an empty one. */
export async function startStores(
  config: Config,
  types: RegisteredTypes,
  version: string,
  log: Logger,
): Promise<Stores> {
  const now = () => new Date()
  let metrics: Metrics | undefined
  const fleetStatus = statusSettings(config, types)
  const mirror = config.mirror && openMirror(config, types, log)
  const start = (store: Store, upstream?: Mirror): Promise<Engine> =>
    startEngine({
      store,
      ...(upstream && { upstream: upstream.status }),
      types,
      now,
      brake: config.brake,
      fleetStatus,
      onStoreError(error, doing) {
        metrics?.countStoreError(doing)
        log.error({ err: error, doing }, 'the store failed')
      },
      onStoreBack: () => log.info('store connection restored'),
      onLoading: (documents) => log.info({ documents }, 'loading'),
      controlsRollouts: config.mode === 'crud' && !upstream,
      checks: checkSettings(config),
      onRolloutProblem: (err) => log.warn({ err }, 'a rollout cannot advance now'),
      ...(config.snapshotFolder !== undefined && { snapshots: openSnapshots(config.snapshotFolder) }),
    })
  const engine = await start(
    mirror?.store ??
      openStore(config.store, { write: config.mode === 'crud', warn: (message) => log.warn(message) }),
    mirror,
  )
  if (engine.isLoaded) await fillEmptyStore(config, types, engine, start)
  else fillLater(config, types, engine, log)
  metrics = createMetrics(types, version, engine, now)
  return { engine, mirror, metrics }
}

function openMirror({ mirror, store }: Config, types: RegisteredTypes, log: Logger): Mirror | undefined {
  if (!mirror || store.backend !== 'sqlite') return undefined
  const { url, tokens, selector } = mirror
  if (selector !== undefined) readSelector(types, 'MIRROR_SELECTOR', selector)
  readFirstToken(tokens)
  return startMirror({
    url,
    selector,
    path: store.path,
    token: () => readFirstToken(tokens),
    onProblem: (err) => log.error({ err, upstream: url }, 'the upstream cannot be followed'),
    onBack: () => log.info({ upstream: url }, 'upstream connection restored'),
  })
}
