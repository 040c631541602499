// A member of a group in kafkajs; calls come in as lines of JSON, answers go out likewise.
//
// The library has no range assignor, so one is made here with its own tools: whoever leads a group of several libraries
// must assign by the protocol that all of them know. It has no static members either.
const readline = require('readline')
const { AssignerProtocol, Kafka, logLevel } = require('kafkajs')

const [address, text] = process.argv.slice(2)
const options = JSON.parse(text)

const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  protocol: ({ topics }) => ({
    name: 'range',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }),
  }),
  assign: async ({ members }) => {
    const readers = {}
    for (const { memberId, memberMetadata } of members) {
      for (const topic of AssignerProtocol.MemberMetadata.decode(memberMetadata).topics) {
        ;(readers[topic] = readers[topic] || []).push(memberId)
      }
    }
    await cluster.addMultipleTargetTopics(Object.keys(readers))
    const parts = Object.fromEntries(members.map(({ memberId }) => [memberId, {}]))
    for (const [topic, ids] of Object.entries(readers)) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map((one) => one.partitionId)
      partitions.sort((left, right) => left - right)
      ids.sort()
      const least = Math.floor(partitions.length / ids.length)
      const longer = partitions.length % ids.length
      ids.forEach((id, number) => {
        const start = least * number + Math.min(number, longer)
        parts[id][topic] = partitions.slice(start, start + least + (number < longer ? 1 : 0))
      })
    }
    return Object.entries(parts).map(([memberId, assignment]) => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment, userData: Buffer.alloc(0) }),
    }))
  },
})

const kafka = new Kafka({ clientId: options.client_id, brokers: [address], logLevel: logLevel.WARN })
const consumer = kafka.consumer({
  groupId: options.group,
  partitionAssigners: [range],
  sessionTimeout: options.session_ms,
  heartbeatInterval: options.heartbeat_ms,
  maxWaitTimeInMs: 100,
})
const admin = kafka.admin()
const state = { owned: [], assignments: 0, error: null }

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  state.assignments += 1
  state.owned = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => [topic, partition])
  )
})
consumer.on(consumer.events.CRASH, ({ payload }) => {
  if (!payload.restart) state.error = String(payload.error)
})

const calls = {
  look: async () => state,
  groups: async () => (await admin.listGroups()).groups.map(({ groupId }) => groupId),
  describe: async (group) => {
    const [found] = (await admin.describeGroups([group])).groups
    const owned = {}
    for (const { clientId, memberAssignment } of found.members) {
      const { assignment } = AssignerProtocol.MemberAssignment.decode(memberAssignment)
      owned[clientId] = Object.entries(assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => [topic, partition])
      )
    }
    return { state: found.state.toLowerCase(), owned }
  },
  // The library joins the group as a member to do this.
  reset: async (group, rows) => {
    for (const topic of new Set(rows.map(([name]) => name))) {
      const partitions = rows
        .filter(([name]) => name === topic)
        .map(([, partition, offset]) => ({ partition, offset: String(offset) }))
      await admin.setOffsets({ groupId: group, topic, partitions })
    }
  },
  delete: (group) => admin.deleteGroups([group]),
  commit: (rows) =>
    consumer.commitOffsets(rows.map(([topic, partition, offset]) => ({ topic, partition, offset: String(offset) }))),
  committed: async (rows) => {
    const topics = [...new Set(rows.map(([topic]) => topic))]
    const found = await admin.fetchOffsets({ groupId: options.group, topics })
    const offsets = {}
    for (const { topic, partitions } of found) {
      for (const { partition, offset } of partitions) offsets[[topic, partition]] = Number(offset)
    }
    return rows.map(([topic, partition]) => {
      const offset = offsets[[topic, partition]]
      return [topic, partition, offset === undefined || offset === -1 ? null : offset]
    })
  },
}

const main = async () => {
  const begun = (async () => {
    await admin.connect()
    await consumer.connect()
    await consumer.subscribe({ topics: options.topics, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: async () => {} })
  })()
  begun.catch((error) => {
    state.error = String(error)
  })
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [method, given] = JSON.parse(line)
    let answer
    try {
      answer = { result: (await calls[method](...given)) ?? null }
    } catch (error) {
      answer = { error: `${error.name}: ${error.message} ${JSON.stringify(error.groups ?? '')}` }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  await begun.catch(() => {})
  await consumer.disconnect()
  await admin.disconnect()
}

main()
