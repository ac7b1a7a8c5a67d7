// Whether the log is whole: every hash is computed again by the service, when somebody asks for it.
import { Button, List, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Verification } from '../../../src/api/revision-schema.ts'
import { queries } from '../../api/queries.ts'
import { atServer } from '../../api/server-clock.ts'
import { Age } from '../../parts/age.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { ProblemNotice } from '../../parts/problem-notice.tsx'
import { ToneBadge } from '../../parts/state-badge.tsx'

export function VerifyPanel() {
  const { data, error, isFetching, refetch, dataUpdatedAt } = useQuery(queries.verification())
  return (
    <Panel
      title="Verification"
      aside={
        <Button variant="default" loading={isFetching} onClick={() => void refetch()}>
          Verify the log
        </Button>
      }
    >
      {error && <ProblemNotice error={error} />}
      {data ? (
        <Found verification={data} at={atServer(dataUpdatedAt)} />
      ) : (
        <Empty title="Not verified in this tab yet">
          Every revision holds a hash of itself and of the one before. The service computes all of them again,
          and compares the documents with what the log makes of them.
        </Empty>
      )}
    </Panel>
  )
}

function Found({ verification, at }: { readonly verification: Verification; readonly at: string }) {
  const { verified, from, to, hash, revisions, documents, anchor, problems } = verification
  return (
    <>
      <Facts
        label="Verification"
        head={['Result', 'When', 'Revisions', 'Documents', 'Hash of the last one']}
        rows={[
          {
            id: 'result',
            cells: [
              <ToneBadge key="result" tone={verified ? 'good' : 'bad'}>
                {verified ? 'whole' : 'broken'}
              </ToneBadge>,
              <Age key="when" at={at} />,
              `${revisions.toLocaleString('en')} (#${from} to #${to})`,
              documents.toLocaleString('en'),
              <code key="hash">{hash}</code>,
            ],
          },
        ]}
      />
      {anchor && (
        <Text size="sm" p="sm">
          Revisions before #{anchor.revision} were given up on purpose.
        </Text>
      )}
      {problems.length > 0 && (
        <List size="sm" p="sm">
          {problems.map((problem) => (
            <List.Item key={problem}>{problem}</List.Item>
          ))}
        </List>
      )}
    </>
  )
}
