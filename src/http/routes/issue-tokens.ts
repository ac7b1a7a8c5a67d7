// The tokens of clusters, issued together: what a bootstrap of many clusters needs.
import { ref } from '../../api/component-ref.ts'
import { JSON_TYPE } from '../../api/media-types.ts'
import { ISSUE_SCHEMA, ISSUED_TOKENS_SCHEMA } from '../../api/token-schema.ts'
import type { IssuedTokens } from '../../api/wire-types.ts'
import type { Steps } from '../../base/steps.ts'
import { clusterTokenName, TOKENS } from '../../domain/access/token.ts'
import type { IssueToken } from '../../domain/commands/command.ts'
import { newToken } from '../../engine/token-secret.ts'
import { buildChecker } from '../../registry/validator.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { identityOf } from '../auth/identity.ts'
import { example, json, ok, PREVIEWED, WRITING, WRITTEN_HEADERS } from '../openapi/openapi-operation.ts'
import { issueExample, issueSchema } from '../openapi/openapi-tokens.ts'
import { sendProblem } from '../request/problem-response.ts'
import { answerCommands } from '../request/run-write.ts'
import { graceEndIn } from '../request/time-field.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const checkIssue = buildChecker(ISSUE_SCHEMA)

export function issueTokensRoute(service: Service): Route {
  const { types, now } = service
  return route({
    method: 'POST',
    path: '/tokens/issue',
    access: 'admin',
    tag: 'tokens',
    id: 'issue_tokens',
    summary: 'Issue the tokens of clusters, all in one revision. For admins.',
    description: `Each cluster gets a secret of the token cluster-ID, which polls for it alone: the token is created, or rotated where it is there already. All tokens are issued, or none. ${PREVIEWED}`,
    body: { content: json(issueSchema(), JSON_TYPE, example(issueExample(types))) },
    answers: {
      200: ok(
        'The tokens with their secrets; a preview with dry_run.',
        { anyOf: [ref('issued_tokens'), ref('preview')] },
        WRITTEN_HEADERS,
      ),
    },
    problems: WRITING,
    schemas: { issued_tokens: ISSUED_TOKENS_SCHEMA },
    handler: async (request, reply) => {
      const time = now()
      const graceEnd = graceEndIn(request.body, checkIssue, time)
      if (!graceEnd.ok) return sendProblem(reply, graceEnd.problem)
      const { clusters } = request.body as { clusters: readonly string[] }
      const { name: createdBy } = identityOf(request)
      const made = await runTimeSliced(newClusterTokens(clusters, createdBy, time))
      const commands = made.map(({ token }, i): IssueToken => {
        const place = `/clusters/${i}`
        return { op: 'issue_token', token, graceEnd: graceEnd.value, path: place, operation: place }
      })
      return answerCommands(
        { service, request, reply },
        commands,
        [TOKENS, 'issue_token'],
        ({ revision }) => ({
          headers: { 'Cache-Control': 'no-store' },
          body: { revision } satisfies IssuedTokens,
          shownOnce: {
            tokens: made.map(({ token, secret }, i) => ({ cluster: clusters[i], name: token.name, secret })),
          },
        }),
      )
    },
  })
}

function* newClusterTokens(
  clusters: readonly string[],
  createdBy: string,
  time: Date,
): Steps<ReturnType<typeof newToken>[]> {
  const made = []
  for (const cluster of clusters) {
    const grant = { role: 'cluster', cluster } as const
    made.push(newToken({ name: clusterTokenName(cluster), grant, expiresAt: undefined, createdBy }, time))
    yield
  }
  return made
}
