// Habits that docs/writing.md asks writers to drop, each with what to write instead.

export interface Habit {
  readonly name: string
  readonly pattern: RegExp
  readonly instead: string
}

export const HABITS: readonly Habit[] = [
  {
    name: 'status code as a verb',
    pattern: /\b(?:is|are|was|were|be|being)(?: then| now)?(?: an?| the)? (?:`?[45]\d\d`?)\b/gi,
    instead: '"fails with 503", "returns 404"',
  },
  {
    name: '"Of …:" or "Of …," first',
    pattern: /(?<=^|[.!?] )Of (?!course)[^.]{1,80}?[:,]/g,
    instead: 'name the subject first',
  },
  {
    name: '"What …" or "Who …" first',
    pattern: /(?<=^|[.!?] )(?:What|Who|Whoever|Whatever)\b(?![^.!]*\?)/g,
    instead: 'name the thing or the person: "operators who …", "the fields that …"',
  },
  {
    name: '"when nothing is said"',
    pattern: /\b(?:nothing is said|unless said|says? so|said otherwise|saying so|say so|is said of)\b/gi,
    instead: '"default", "not set", "unless configured"',
  },
  {
    name: 'old word',
    pattern: /\b(?:dear|for ever|anew|whoever|whatever|whichever|meanwhile|beside|thereof|hence|betimes)\b/gi,
    instead: 'expensive, forever, again, any, during this time, next to',
  },
  {
    name: 'thing that acts like a person',
    pattern:
      /\b(?:is|are) away\b|\bgoes? away\b|\bhelpings?\b|\bin turns\b|\bis good (?:for|at|in)\b|\btells? of\b|\btold of\b|\bcomes? back with\b/gi,
    instead: 'is unavailable, time slices, is valid, reports',
  },
  {
    name: 'home-made term for a known one',
    pattern:
      /\bset back\b|\banother history\b|\bgiven up\b|\bgives? up\b|\bdied meanwhile\b|\bnobody hurries\b/gi,
    instead: 'rolled back, diverged history, pruned, removed',
  },
]
