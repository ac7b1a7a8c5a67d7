// Every command: its name, one line about it, and where its definition is loaded from.

import type { WriteMethod } from '../domain/types/resource-type.ts'
import type { Define, DefineFor } from './cli-command.ts'
import { aNoun, labelField, type Noun } from './server/nouns.ts'

interface FleetCommand {
  readonly name: string
  readonly group: string
  readonly summary: string
  /** Whether the command needs the server's types; `fresh` when cached ones will not do. */
  readonly types?: true | 'fresh'
  readonly hidden?: boolean
  define(): Promise<Define>
}

interface NounCommand {
  readonly name: string
  readonly aliases?: readonly string[]
  summary(noun: Noun): string
  fits(noun: Noun): boolean
  /** The method of the noun's routes that the command uses. */
  readonly needs?: WriteMethod
  define(): Promise<DefineFor>
}

/** The command that the completion scripts of shells call. */
export const COMPLETE = '__complete'

/** Types that have commands of their own. */
const STRATEGIES = 'strategies'
const FREEZES = 'freezes'

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

const any = (): boolean => true
const ofType =
  (type: string) =>
  ({ name }: Noun): boolean =>
    name === type
const assignable = ({ delivery }: Noun): boolean => delivery !== undefined
const hasLabels = (noun: Noun): boolean => labelField(noun) !== undefined
const cluster = (noun: Noun): boolean => noun.cluster !== undefined

/** Of those of one name, the first that fits a noun is the noun's. */
export const NOUN_COMMANDS: readonly NounCommand[] = [
  {
    name: 'list',
    aliases: ['ls'],
    summary: () => 'list strategies, with their waves',
    fits: ofType(STRATEGIES),
    define: async () => (await import('./commands/rollout-strategies.ts')).defineListStrategies,
  },
  {
    name: 'list',
    aliases: ['ls'],
    summary: () => 'list freezes: whether they are on, for whom and until when',
    fits: ofType(FREEZES),
    define: async () => (await import('./commands/change-freezes.ts')).defineListFreezes,
  },
  {
    name: 'list',
    aliases: ['ls'],
    summary: ({ name }) => `list ${name.replaceAll('_', ' ')}`,
    fits: any,
    define: async () => (await import('./commands/list.ts')).defineList,
  },
  {
    name: 'get',
    summary: ({ singular }) => `show one ${singular}`,
    fits: any,
    define: async () => (await import('./commands/get.ts')).defineGet,
  },
  {
    name: 'describe',
    summary: () => 'the waves of a strategy, and what each has to prove',
    fits: ofType(STRATEGIES),
    define: async () => (await import('./commands/rollout-strategies.ts')).defineDescribeStrategy,
  },
  {
    name: 'describe',
    summary: () => 'one freeze: when it is on, whom it covers, and who may pass it',
    fits: ofType(FREEZES),
    define: async () => (await import('./commands/change-freezes.ts')).defineDescribeFreeze,
  },
  {
    name: 'describe',
    summary: ({ singular }) =>
      `one ${singular} on one screen: what it is, what it gets and from where, what changed`,
    fits: cluster,
    define: async () => (await import('./commands/describe.ts')).defineDescribe,
  },
  {
    name: 'describe',
    summary: ({ singular }) =>
      `one ${singular} on one screen: what it is, who has which version, what changed`,
    fits: (noun) => !cluster(noun),
    define: async () => (await import('./commands/describe-definition.ts')).defineDescribeDefinition,
  },
  {
    name: 'clusters',
    summary: (noun) => `which clusters have ${aNoun(noun)}, and in which version`,
    fits: assignable,
    define: async () => (await import('./commands/assigned-clusters.ts')).defineAssignedClusters,
  },
  {
    name: 'status',
    summary: ({ singular }) => `what a ${singular} was served, has applied, and how its components fare`,
    fits: cluster,
    define: async () => (await import('./commands/cluster-status.ts')).defineClusterStatus,
  },
  {
    name: 'inputs',
    summary: (noun) => `what ${aNoun(noun)} gets when it polls`,
    fits: cluster,
    define: async () => (await import('./commands/inputs.ts')).defineInputs,
  },
  {
    name: 'diff',
    summary: ({ singular }) => `what two ${singular}s get differently, or one then and now`,
    fits: cluster,
    define: async () => (await import('./commands/cluster-diff.ts')).defineClusterDiff,
  },
  {
    name: 'create',
    summary: () => 'create a strategy, wave by wave',
    fits: ofType(STRATEGIES),
    needs: 'post',
    define: async () => (await import('./commands/rollout-strategies.ts')).defineCreateStrategy,
  },
  {
    name: 'create',
    summary: () => 'keep clusters as they are, for a time',
    fits: ofType(FREEZES),
    needs: 'post',
    define: async () => (await import('./commands/change-freezes.ts')).defineCreateFreeze,
  },
  {
    name: 'create',
    summary: (noun) => `create ${aNoun(noun)}${noun.delivery ? ', and assign it' : ''}`,
    fits: any,
    needs: 'post',
    define: async () => (await import('./commands/create.ts')).defineCreate,
  },
  {
    name: 'update',
    summary: (noun) => `change fields of ${aNoun(noun)}`,
    fits: any,
    needs: 'patch',
    define: async () => (await import('./commands/update.ts')).defineUpdate,
  },
  {
    name: 'label',
    summary: (noun) => `set or remove labels of ${aNoun(noun)}`,
    fits: hasLabels,
    needs: 'patch',
    define: async () => (await import('./commands/label.ts')).defineLabel,
  },
  {
    name: 'edit',
    summary: (noun) => `change ${aNoun(noun)} in your editor`,
    fits: any,
    needs: 'put',
    define: async () => (await import('./commands/edit.ts')).defineEdit,
  },
  {
    name: 'delete',
    aliases: ['rm'],
    summary: (noun) => `delete ${aNoun(noun)}`,
    fits: any,
    needs: 'delete',
    define: async () => (await import('./commands/delete.ts')).defineDelete,
  },
  {
    name: 'restore',
    summary: ({ singular }) => `bring a deleted ${singular} back as it was`,
    fits: cluster,
    needs: 'delete',
    define: async () => (await import('./commands/restore-cluster.ts')).defineRestore,
  },
  {
    name: 'assign',
    summary: (noun) => `give ${aNoun(noun)} to clusters, or change how they have it`,
    fits: assignable,
    define: async () => (await import('./commands/assign.ts')).defineAssign,
  },
  {
    name: 'unassign',
    summary: (noun) => `take ${aNoun(noun)} from clusters`,
    fits: assignable,
    define: async () => (await import('./commands/unassign.ts')).defineUnassign,
  },
  {
    name: 'set',
    summary: (noun) => `change ${aNoun(noun)} on clusters that have it, such as its version`,
    fits: ({ delivery }) => Object.keys(delivery?.reference.properties ?? {}).length > 1,
    define: async () => (await import('./commands/set-fields.ts')).defineSet,
  },
  {
    name: 'promote',
    summary: (noun) => `give clusters the version of ${aNoun(noun)} that others have proved`,
    fits: ({ delivery }) => delivery?.versions === true,
    define: async () => (await import('./commands/promote.ts')).definePromote,
  },
  {
    name: 'patch',
    summary: (noun) => `set values that clusters have for ${aNoun(noun)}`,
    fits: ({ delivery }) => delivery?.patches === true,
    define: async () => (await import('./commands/patch.ts')).definePatch,
  },
  {
    name: 'versions',
    summary: (noun) => `which versions of ${aNoun(noun)} clusters have`,
    fits: ({ delivery }) => delivery?.versions === true,
    define: async () => (await import('./commands/versions.ts')).defineVersions,
  },
  {
    name: 'history',
    summary: (noun) => `who changed ${aNoun(noun)}, when and why`,
    fits: any,
    define: async () => (await import('./commands/document-history.ts')).defineHistory,
  },
]
