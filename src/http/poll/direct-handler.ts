// The polls that memory is enough for: known tokens, found clusters, short answers.
import type { DirectPolls } from '../direct/direct-polls.ts'
import type { Service } from '../service.ts'
import { closesConnection, composeAnswer } from './answer.ts'
import { answerPoll } from './answer-poll.ts'
import { noteSighting } from './note-sighting.ts'

/** What has a problem is left to `poll-handler.ts`, which says so, logs and counts it. */
export function createDirectPolls(service: Service): DirectPolls {
  const { engine, auth, types, metrics } = service
  return {
    answer(poll, mustClose) {
      const { dns, endpoint } = poll
      if (!engine.isLoaded || engine.draining || !types.byEndpoint(endpoint)) return undefined
      const started = performance.now()
      const identity = auth.recognise(poll)
      const result =
        identity &&
        answerPoll(service, identity, { dns, endpoint, query: '' }, poll.headers['accept-encoding'])
      if (!result?.ok) return undefined
      const answer = composeAnswer(result.value, mustClose || closesConnection(poll, false))
      if (!answer) return undefined
      noteSighting(service, { request: poll, dns, endpoint }, identity, result)
      metrics.countPoll(endpoint, 200, (performance.now() - started) / 1000)
      return answer
    },
    callerOf: (poll) => auth.callerOf(poll),
  }
}
