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
    summary: 'apply files: make the fleet what they say',
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
    summary: 'update files with what others have changed',
    define: async () => (await import('./commands/pull.ts')).definePull,
  },
  {
    name: 'batch',
    group: CHANGE,
    types: true,
    summary: 'run the operations of a file as one revision',
    define: async () => (await import('./commands/run-batch.ts')).defineBatch,
  },
  {
    name: 'revert',
    group: CHANGE,
    types: true,
    summary: 'undo one revision',
    define: async () => (await import('./commands/revert.ts')).defineRevert,
  },
  {
    name: 'rollback',
    group: CHANGE,
    types: true,
    summary: 'return the fleet, or a part of it, to an earlier revision',
    define: async () => (await import('./commands/rollback-fleet.ts')).defineRollback,
  },
  {
    name: 'demo',
    group: CHANGE,
    types: true,
    summary: 'run a workflow of the demo',
    define: async () => (await import('./commands/demo.ts')).defineDemo,
  },
  {
    name: 'rollout',
    group: STAGE,
    types: true,
    summary: 'watch, pause, approve or abort changes that go wave by wave',
    define: async () => (await import('./commands/staged-rollouts.ts')).defineRollout,
  },
  {
    name: 'hold',
    group: STAGE,
    types: true,
    summary: 'hold clusters: they keep what they have',
    define: async () => (await import('./commands/cluster-holds.ts')).defineHold,
  },
  {
    name: 'status',
    group: READ,
    types: true,
    summary: 'show the server, what it holds, and what the clusters are doing',
    define: async () => (await import('./commands/status.ts')).defineStatus,
  },
  {
    name: 'attention',
    group: READ,
    types: true,
    summary: 'list the clusters that need somebody, and what to do next',
    define: async () => (await import('./commands/attention.ts')).defineAttention,
  },
  {
    name: 'blame',
    group: READ,
    types: true,
    summary: 'show who set each value that a cluster gets, when and why',
    define: async () => (await import('./commands/blame.ts')).defineBlame,
  },
  {
    name: 'overrides',
    group: READ,
    types: true,
    summary: 'list, or drop, what clusters set themselves instead of taking it from the catalog',
    define: async () => (await import('./commands/show-overrides.ts')).defineOverrides,
  },
  {
    name: 'wait',
    group: READ,
    types: true,
    summary: 'wait until clusters have applied what they receive',
    define: async () => (await import('./commands/wait.ts')).defineWait,
  },
  {
    name: 'revision',
    group: READ,
    summary: 'show how far a revision has come in the fleet',
    define: async () => (await import('./commands/revision-status.ts')).defineRevision,
  },
  {
    name: 'log',
    group: READ,
    types: true,
    summary: 'show who changed what, when and why',
    define: async () => (await import('./commands/log.ts')).defineLog,
  },
  {
    name: 'show',
    group: READ,
    summary: 'show one revision, or several as one, and what it meant for clusters',
    define: async () => (await import('./commands/show-revision.ts')).defineShow,
  },
  {
    name: 'watch',
    group: READ,
    types: true,
    summary: 'follow revisions as they are made',
    define: async () => (await import('./commands/watch.ts')).defineWatch,
  },
  {
    name: 'export',
    group: READ,
    types: 'fresh',
    summary: 'write the fleet to files that can be applied',
    define: async () => (await import('./commands/export.ts')).defineExport,
  },
  {
    name: 'can-i',
    group: READ,
    types: true,
    summary: 'check whether you may do something',
    define: async () => (await import('./commands/can-i.ts')).defineCanI,
  },
  {
    name: 'explain',
    group: READ,
    types: true,
    summary: 'describe the fields of a type',
    define: async () => (await import('./commands/explain-type.ts')).defineExplain,
  },
  {
    name: 'verify',
    group: READ,
    summary: 'verify that the log of changes is whole',
    define: async () => (await import('./commands/verify-server.ts')).defineVerify,
  },
  {
    name: 'bootstrap',
    group: SETUP,
    types: true,
    summary: 'print what clusters apply once to phone home',
    define: async () => (await import('./commands/bootstrap.ts')).defineBootstrap,
  },
  {
    name: 'token',
    group: SETUP,
    types: true,
    summary: 'create, list, rotate and revoke tokens',
    define: async () => (await import('./commands/named-tokens.ts')).defineToken,
  },
  {
    name: 'login',
    group: SETUP,
    summary: 'log in to a server, with a token or at its issuer',
    define: async () => (await import('./commands/login.ts')).defineLogin,
  },
  {
    name: 'logout',
    group: SETUP,
    summary: 'delete the stored tokens of a server',
    define: async () => (await import('./commands/logout.ts')).defineLogout,
  },
  {
    name: 'config',
    group: SETUP,
    summary: 'manage the servers that you work with, by name',
    define: async () => (await import('./commands/config-contexts.ts')).defineConfig,
  },
  {
    name: 'whoami',
    group: SETUP,
    summary: 'show who you are to the server, and what you may do',
    define: async () => (await import('./server/whoami.ts')).whoamiCommand,
  },
  {
    name: 'version',
    group: SETUP,
    summary: 'show the version of this program and of the server',
    define: async () => (await import('./commands/show-version.ts')).defineVersion,
  },
  {
    name: 'api',
    group: SETUP,
    summary: 'send any request to the API',
    define: async () => (await import('./commands/call-api.ts')).defineApi,
  },
  {
    name: 'docs',
    group: SETUP,
    summary: 'show where the API is described',
    define: async () => (await import('./commands/open-docs.ts')).defineDocs,
  },
  {
    name: 'completion',
    group: SETUP,
    summary: 'print the completion script of your shell',
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
