// The commands of each resource type: which nouns have them, their summary, and where each is loaded from.
import type { WriteMethod } from '../domain/types/resource-type.ts'
import type { DefineFor } from './cli-command.ts'
import { aNoun, labelField, type Noun } from './server/nouns.ts'

interface NounCommand {
  readonly name: string
  readonly aliases?: readonly string[]
  summary(noun: Noun): string
  fits(noun: Noun): boolean
  /** The method of the noun's routes that the command uses. */
  readonly needs?: WriteMethod
  define(): Promise<DefineFor>
}

/** Types that have commands of their own. */
const STRATEGIES = 'strategies'
const FREEZES = 'freezes'

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
    summary: () => 'show the waves of a strategy, and what each has to prove',
    fits: ofType(STRATEGIES),
    define: async () => (await import('./commands/rollout-strategies.ts')).defineDescribeStrategy,
  },
  {
    name: 'describe',
    summary: () => 'show one freeze: when it is on, whom it covers, and who may pass it',
    fits: ofType(FREEZES),
    define: async () => (await import('./commands/change-freezes.ts')).defineDescribeFreeze,
  },
  {
    name: 'describe',
    summary: ({ singular }) =>
      `show one ${singular} in full: what it is, what it gets and from where, what changed`,
    fits: cluster,
    define: async () => (await import('./commands/describe.ts')).defineDescribe,
  },
  {
    name: 'describe',
    summary: ({ singular }) =>
      `show one ${singular} in full: what it is, who has which version, what changed`,
    fits: (noun) => !cluster(noun),
    define: async () => (await import('./commands/describe-definition.ts')).defineDescribeDefinition,
  },
  {
    name: 'clusters',
    summary: (noun) => `list the clusters that have ${aNoun(noun)}, with its version`,
    fits: assignable,
    define: async () => (await import('./commands/assigned-clusters.ts')).defineAssignedClusters,
  },
  {
    name: 'status',
    summary: ({ singular }) =>
      `show what a ${singular} was served and has applied, and whether its components work`,
    fits: cluster,
    define: async () => (await import('./commands/cluster-status.ts')).defineClusterStatus,
  },
  {
    name: 'inputs',
    summary: (noun) => `show what ${aNoun(noun)} gets when it polls`,
    fits: cluster,
    define: async () => (await import('./commands/inputs.ts')).defineInputs,
  },
  {
    name: 'diff',
    summary: ({ singular }) => `compare what two ${singular}s get, or one then and now`,
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
    summary: () => 'create a freeze: its clusters get nothing new for a time',
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
    summary: (noun) => `update fields of ${aNoun(noun)}`,
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
    summary: (noun) => `edit ${aNoun(noun)} in your editor`,
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
    summary: ({ singular }) => `restore a deleted ${singular} as it was`,
    fits: cluster,
    needs: 'delete',
    define: async () => (await import('./commands/restore-cluster.ts')).defineRestore,
  },
  {
    name: 'assign',
    summary: (noun) => `assign ${aNoun(noun)} to clusters, or change how they have it`,
    fits: assignable,
    define: async () => (await import('./commands/assign.ts')).defineAssign,
  },
  {
    name: 'unassign',
    summary: (noun) => `unassign ${aNoun(noun)} from clusters`,
    fits: assignable,
    define: async () => (await import('./commands/unassign.ts')).defineUnassign,
  },
  {
    name: 'set',
    summary: (noun) => `set fields of ${aNoun(noun)}, such as its version, on clusters that have it`,
    fits: ({ delivery }) => Object.keys(delivery?.reference.properties ?? {}).length > 1,
    define: async () => (await import('./commands/set-fields.ts')).defineSet,
  },
  {
    name: 'promote',
    summary: (noun) => `promote the version of ${aNoun(noun)} from some clusters to others`,
    fits: ({ delivery }) => delivery?.versions === true,
    define: async () => (await import('./commands/promote.ts')).definePromote,
  },
  {
    name: 'patch',
    summary: (noun) => `set values of ${aNoun(noun)} on clusters`,
    fits: ({ delivery }) => delivery?.patches === true,
    define: async () => (await import('./commands/patch.ts')).definePatch,
  },
  {
    name: 'versions',
    summary: (noun) => `list the versions of ${aNoun(noun)} that clusters have`,
    fits: ({ delivery }) => delivery?.versions === true,
    define: async () => (await import('./commands/versions.ts')).defineVersions,
  },
  {
    name: 'history',
    summary: (noun) => `show who changed ${aNoun(noun)}, when and why`,
    fits: any,
    define: async () => (await import('./commands/document-history.ts')).defineHistory,
  },
]
