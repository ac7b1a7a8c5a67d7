// Versions of the Flux Operator by the User-Agent that names them: there are few, and every poll brings one.

const MAX_AGENTS = 1000

export class OperatorVersions {
  readonly #known = new Map<string, string>()

  /** Empty where the agent is no Flux Operator. */
  of(agent: string): string {
    return this.#known.get(agent) ?? this.#learn(agent)
  }

  #learn(agent: string): string {
    const [, version = ''] = /^flux-operator\/v?(\d{1,4}(?:\.\d{1,4}){0,2}[-+.\w]{0,32})$/.exec(agent) ?? []
    if (this.#known.size < MAX_AGENTS) this.#known.set(agent, version)
    return version
  }
}
