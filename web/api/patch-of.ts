// The merge patch (RFC 7396) that makes one document of another.
import { equalJson, isObject, type Json, type JsonObject } from '../../src/base/json.ts'

/** Lists are replaced as a whole, and what `wanted` does not have is removed. */
export function patchOf(base: JsonObject, wanted: JsonObject): JsonObject {
  const patch: Record<string, Json> = {}
  for (const key of Object.keys(base)) if (!(key in wanted)) patch[key] = null
  for (const [key, value] of Object.entries(wanted)) {
    const was = base[key]
    if (was !== undefined && equalJson(was, value)) continue
    patch[key] = isObject(was) && isObject(value) ? patchOf(was, value) : value
  }
  return patch
}
