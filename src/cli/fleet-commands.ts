// The commands of the whole fleet and of the program: name, group, summary, and where each is loaded from.
import type { Define } from './cli-command.ts'

interface FleetCommand {
  readonly name: string
  readonly group: string
  readonly summary: string
  /** Whether the command needs the server's types; `fresh` when cached ones will not do. */
  readonly types?: true | 'fresh'
  readonly hidden?: boolean
  define(): Promise<Define>
}

/** The command that the completion scripts of shells call. */
export const COMPLETE = '__complete'

const CHANGE = 'Changing the fleet:'
const STAGE = 'Rolling changes out:'
const READ = 'Looking at the fleet:'
const SETUP = 'Setting up:'

export const FLEET_COMMANDS: readonly FleetCommand[] = [
  {
    name: 'apply',
    group: CHANGE,
    types: 'fresh',
    summary: 'make the fleet what files say',
    define: async () => (await import('./commands/apply.ts')).defineApply,
  },
  {
    name: 'diff',
    group: CHANGE,
    types: 'fresh',
    summary: 'show what apply would change, or what has changed since then',
    define: async () => (await import('./commands/diff-set.ts')).defineDiff,
  },
  {
    name: 'pull',
    group: CHANGE,
    types: 'fresh',
    summary: 'take what others have changed into the files',
    define: async () => (await import('./commands/pull.ts')).definePull,
  },
  {
    name: 'batch',
    group: CHANGE,
    types: true,
    summary: 'do the operations of a file as one revision',
    define: async () => (await import('./commands/run-batch.ts')).defineBatch,
  },
  {
    name: 'revert',
    group: CHANGE,
    types: true,
    summary: 'take back what one revision did',
    define: async () => (await import('./commands/revert.ts')).defineRevert,
  },
  {
    name: 'rollback',
    group: CHANGE,
    types: true,
    summary: 'make the fleet, or a part of it, what it was',
    define: async () => (await import('./commands/rollback-fleet.ts')).defineRollback,
  },
  {
    name: 'demo',
    group: CHANGE,
    types: true,
    summary: 'the workflows of the demo in one command each',
    define: async () => (await import('./commands/demo.ts')).defineDemo,
  },
  {
    name: 'rollout',
    group: STAGE,
    types: true,
    summary: 'changes that reach the fleet wave by wave: watch, pause, approve, abort',
    define: async () => (await import('./commands/staged-rollouts.ts')).defineRollout,
  },
  {
    name: 'hold',
    group: STAGE,
    types: true,
    summary: 'clusters that keep what they have',
    define: async () => (await import('./commands/cluster-holds.ts')).defineHold,
  },
  {
    name: 'status',
    group: READ,
    types: true,
    summary: 'which server this is, what it holds, and what the clusters are doing',
    define: async () => (await import('./commands/status.ts')).defineStatus,
  },
  {
    name: 'attention',
    group: READ,
    types: true,
    summary: 'the clusters that need somebody, and what to do next',
    define: async () => (await import('./commands/attention.ts')).defineAttention,
  },
  {
    name: 'blame',
    group: READ,
    types: true,
    summary: 'where each value that a cluster gets comes from: who set it, when and why',
    define: async () => (await import('./commands/blame.ts')).defineBlame,
  },
  {
    name: 'overrides',
    group: READ,
    types: true,
    summary: 'what clusters set themselves instead of taking it from the catalog, and giving it up',
    define: async () => (await import('./commands/show-overrides.ts')).defineOverrides,
  },
  {
    name: 'wait',
    group: READ,
    types: true,
    summary: 'wait until clusters have what they are to have',
    define: async () => (await import('./commands/wait.ts')).defineWait,
  },
  {
    name: 'revision',
    group: READ,
    summary: 'how far a revision has come in the fleet',
    define: async () => (await import('./commands/revision-status.ts')).defineRevision,
  },
  {
    name: 'log',
    group: READ,
    types: true,
    summary: 'who changed what, when and why',
    define: async () => (await import('./commands/log.ts')).defineLog,
  },
  {
    name: 'show',
    group: READ,
    summary: 'one revision, or several as one: changes, and what they meant for clusters',
    define: async () => (await import('./commands/show-revision.ts')).defineShow,
  },
  {
    name: 'watch',
    group: READ,
    types: true,
    summary: 'follow revisions as they happen',
    define: async () => (await import('./commands/watch.ts')).defineWatch,
  },
  {
    name: 'export',
    group: READ,
    types: 'fresh',
    summary: 'write the fleet down as a set that can be applied',
    define: async () => (await import('./commands/export.ts')).defineExport,
  },
  {
    name: 'can-i',
    group: READ,
    types: true,
    summary: 'whether you may do something, before you try',
    define: async () => (await import('./commands/can-i.ts')).defineCanI,
  },
  {
    name: 'explain',
    group: READ,
    types: true,
    summary: 'what the fields of a type are',
    define: async () => (await import('./commands/explain-type.ts')).defineExplain,
  },
  {
    name: 'verify',
    group: READ,
    summary: 'check that the log of changes is whole',
    define: async () => (await import('./commands/verify-server.ts')).defineVerify,
  },
  {
    name: 'bootstrap',
    group: SETUP,
    types: true,
    summary: 'what clusters apply once to phone home',
    define: async () => (await import('./commands/bootstrap.ts')).defineBootstrap,
  },
  {
    name: 'token',
    group: SETUP,
    types: true,
    summary: 'who may come in, as what, and until when',
    define: async () => (await import('./commands/named-tokens.ts')).defineToken,
  },
  {
    name: 'login',
    group: SETUP,
    summary: 'keep a token for a server, or log in at its issuer',
    define: async () => (await import('./commands/login.ts')).defineLogin,
  },
  {
    name: 'logout',
    group: SETUP,
    summary: 'forget the tokens of a server',
    define: async () => (await import('./commands/logout.ts')).defineLogout,
  },
  {
    name: 'config',
    group: SETUP,
    summary: 'keep servers and their tokens under names',
    define: async () => (await import('./commands/config-contexts.ts')).defineConfig,
  },
  {
    name: 'whoami',
    group: SETUP,
    summary: 'who the server takes you for, and what you may do',
    define: async () => (await import('./server/whoami.ts')).whoamiCommand,
  },
  {
    name: 'version',
    group: SETUP,
    summary: 'of this program and of the server',
    define: async () => (await import('./commands/show-version.ts')).defineVersion,
  },
  {
    name: 'api',
    group: SETUP,
    summary: 'any request to the server',
    define: async () => (await import('./commands/call-api.ts')).defineApi,
  },
  {
    name: 'docs',
    group: SETUP,
    summary: 'where the description of the API is to be read',
    define: async () => (await import('./commands/open-docs.ts')).defineDocs,
  },
  {
    name: 'completion',
    group: SETUP,
    summary: 'completion for your shell',
    define: async () => (await import('./commands/completion.ts')).defineCompletion,
  },
  {
    name: COMPLETE,
    group: SETUP,
    types: true,
    hidden: true,
    summary: 'what could come next on a command line',
    define: async () => (await import('./commands/complete.ts')).defineComplete,
  },
]
