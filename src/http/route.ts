// A route in one declaration: who may call it, what it takes, how it is described, and what it does.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Json } from '../base/json.ts'
import type { Access } from './auth/require-access.ts'
import type { Node } from './openapi/openapi-operation.ts'
import { accepts, refuseBody } from './request/body.ts'
import type { Parameter, Query } from './request/parameters.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Body {
  /** What each content type that is taken holds, in OpenAPI's words. */
  readonly content: Node
  /** Whether it may be left out. */
  readonly isOptional?: boolean
  /** Bytes, where it may be longer than others. */
  readonly limit?: number
}

/** What the description says of a route. */
export interface RouteDescription {
  readonly tag: string
  /** Unique, and what generated clients call it. */
  readonly id: string
  readonly summary: string
  readonly description: string
  /** Beside those that every read, or every write, takes. */
  readonly parameters?: readonly Parameter[]
  readonly body?: Body
  /** By status, in OpenAPI's words. */
  readonly answers: Readonly<Record<number, Node>>
  /** The statuses of refusals. */
  readonly problems: readonly number[]
  /** Schemas that it refers to and brings with it, by name. */
  readonly schemas?: Readonly<Record<string, Node>>
}

/** Params are named by the path. */
interface Call<P extends string> {
  Params: Readonly<Record<P, string>>
  Querystring: Query
  Body: Json | undefined
}

export interface Route<P extends string = string> extends RouteDescription {
  readonly method: Method
  /** As OpenAPI writes it: `/clusters/{cluster}/restore`. */
  readonly path: string
  readonly access: Access
  /** Takes message, dry_run, plan, confirm and impact_limit in its body too. */
  readonly isFleet?: boolean
  /** One route that is described as several. */
  readonly describedAs?: readonly (RouteDescription & { readonly path: string })[]
  handler(request: FastifyRequest<Call<P>>, reply: FastifyReply): unknown
  /** Ends what is open, so that the server can close. */
  onClose?(): void
}

/** Checks the names of the path's parameters. */
export function route<P extends string = never>(declared: Route<P>): Route {
  return declared
}

declare module 'fastify' {
  interface FastifyContextConfig {
    parameters?: readonly Parameter[]
    isFleet?: boolean
  }
}

export function addRoutes(scope: FastifyInstance, routes: readonly Route[]): void {
  for (const { method, path, access, parameters = [], body, isFleet = false, handler, onClose } of routes) {
    scope.route<Call<string>>({
      method,
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { access, parameters: parameters.filter((parameter) => parameter.in === 'query'), isFleet },
      ...(body?.limit !== undefined && { bodyLimit: body.limit }),
      ...(method !== 'GET' && {
        preHandler: body
          ? accepts(Object.keys(body.content), { empty: body.isOptional === true })
          : refuseBody,
      }),
      handler,
    })
    if (onClose)
      scope.addHook('preClose', (done) => {
        onClose()
        done()
      })
  }
}
