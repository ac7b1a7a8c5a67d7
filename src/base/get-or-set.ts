// A map's value for a key, made and kept when it is missing.

interface Keyed<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): unknown
}

export function getOrSet<K, V>(map: Keyed<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}
