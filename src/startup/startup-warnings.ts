// What a process warns of when it starts on a store that an earlier release, or other resource files, have filled.
import type { Logger } from 'pino'
import type { Engine } from '../engine/engine.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'

/** Warns of documents that were created before their ids were reserved; they are still served. */
export function warnOfReserved({ state }: Engine, types: RegisteredTypes, log: Logger): void {
  for (const { name: type, reserved } of types.all) {
    for (const [id, reason] of reserved) {
      if (state.get(type, id))
        log.warn({ type, id, reason }, 'the store holds a document whose id is reserved')
    }
  }
}

export function warnOfUnknownTypes({ state }: Engine, types: RegisteredTypes, log: Logger): void {
  for (const type of state.typeNames().filter((name) => !types.get(name) && !types.system.get(name))) {
    log.warn(
      { type, documents: state.count(type) },
      'the store holds documents of a type that no resource file describes',
    )
  }
}
