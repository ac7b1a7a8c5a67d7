// A route in one declaration: who may call it, what it takes, how it is described, and what it does.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Json } from '../base/json.ts'
import type { Access } from './auth/require-access.ts'
import type { Node } from './openapi/openapi-operation.ts'
import { accepts, refuseBody } from './request/body.ts'
import type { Parameter, Query } from './request/parameters.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Body {
  /** The schema of each accepted content type, as OpenAPI. */
  readonly content: Node
  /** Whether the body may be left out. */
  readonly isOptional?: boolean
  /** The limit in bytes, where it is not the default. */
  readonly limit?: number
  /** Whether the content type does not matter. */
  readonly isAnyType?: boolean
}

/** The OpenAPI description of a route. */
export interface RouteDescription {
  readonly tag: string
  /** The operationId: unique, and the name in generated clients. */
  readonly id: string
  readonly summary: string
  readonly description: string
  /** Parameters in addition to those of every read or every write. */
  readonly parameters?: readonly Parameter[]
  readonly body?: Body
  /** Responses by status, as OpenAPI. */
  readonly answers: Readonly<Record<number, Node>>
  /** The statuses of refusals. */
  readonly problems: readonly number[]
  /** Schemas that only this route adds to the description, by name. */
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
  /** Whether the route takes message, dry_run, plan, confirm and impact_limit in its body too. */
  readonly isFleet?: boolean
  /** Whether the route takes reports of what clusters do: it changes no document, and takes nothing that writes take. */
  readonly isReport?: boolean
  /** Several descriptions for one route, each with its own path. */
  readonly describedAs?: readonly (RouteDescription & { readonly path: string })[]
  handler(request: FastifyRequest<Call<P>>, reply: FastifyReply): unknown
  /** Ends open responses, so that the server can close. */
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
    isReport?: boolean
  }
}

export function addRoutes(scope: FastifyInstance, routes: readonly Route[]): void {
  for (const declared of routes) {
    const { method, path, access, parameters = [], body, isFleet = false, isReport = false } = declared
    const { handler, onClose } = declared
    scope.route<Call<string>>({
      method,
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: {
        access,
        parameters: parameters.filter((parameter) => parameter.in === 'query'),
        isFleet,
        isReport,
      },
      ...(body?.limit !== undefined && { bodyLimit: body.limit }),
      ...(method !== 'GET' &&
        !body?.isAnyType && {
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
