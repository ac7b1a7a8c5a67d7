// What a simulated cluster and a service say to each other: requests, and what became of them.

interface Requested {
  readonly dns: string
  readonly token: string
  /** With the query. */
  readonly path: string
  /** When it had to be sent, in milliseconds of the clock that drives the cluster. */
  readonly dueAt: number
}

/** The desired state of one type, asked by its provider. */
export interface PollRequest extends Requested {
  readonly kind: 'poll'
  readonly endpoint: string
}

/** The acknowledgement of what is applied and ready. */
export interface AckRequest extends Requested {
  readonly kind: 'ack'
}

/** One attempt of the notification-controller to post an event. */
export interface EventRequest extends Requested {
  readonly kind: 'event'
  readonly event: FluxEvent
  readonly attempt: number
}

export type ClusterRequest = PollRequest | AckRequest | EventRequest

/** An answer, or a connection that ended without one. */
export type ClusterAnswer =
  | {
      readonly kind: 'answer'
      readonly status: number
      /** Unpacked. */
      readonly body: string
      readonly revision?: number
      readonly retryAfterMs?: number
    }
  | {
      readonly kind: 'dropped'
      readonly reason: string
      /** Whether the simulation dropped it, and not the service. */
      readonly isInjected?: boolean
    }

export type Send = (request: ClusterRequest) => Promise<ClusterAnswer>

/** What the notification-controller posts. */
export interface FluxEvent {
  readonly involvedObject: {
    readonly apiVersion: string
    readonly kind: string
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }
  readonly severity: 'info' | 'error'
  readonly timestamp: string
  readonly reason: string
  readonly message: string
  readonly metadata: Readonly<Record<string, string>>
  readonly reportingController: string
  readonly reportingInstance: string
}
